"""tau2-bench and tau3-bench results: one file, or ``results.json`` beside a folder ``simulations``.

A reward within 1e-6 of 1 is a pass. The harness drops simulations that ended by an infrastructure error before it computes
anything; here the planned trials (tasks x num_trials) stay, and such a cell is an error. Trials may be unnumbered.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .._exact import natural
from ..campaign import CODE, FAIL, PASS
from ..errors import InputError, quote
from ._json import is_one, load, name, number, part, refuse, take, text
from ._rows import Facts, Format, Options, Row, Rows, has

_NO_VERDICT = ("infrastructure_error",)  # with these the recorded reward 0 is a placeholder


def companion(value: Any) -> bool:
    """One simulation of the folder layout, which the reader of ``results.json`` opens itself."""
    return has(value, "task_id", "termination_reason", "reward_info")


def rows(file: Path, value: Any, options: Options) -> Rows:
    """One agent's simulations in one domain."""
    info = take(value, "info")
    agent = take(info, "agent_info")
    candidate, implementation = name(agent, "llm"), text(agent, "implementation")
    if implementation not in ("", "llm_agent"):
        candidate = f"{candidate} ({implementation})"
    domain = text(info, "environment_info", "domain_name")
    if options.task not in ("", domain):
        return Rows(Facts(task=domain), ())
    simulations = value["simulations"] if value.get("simulations") else _folder(file)
    if not isinstance(simulations, list) or not simulations:
        refuse(simulations, "simulations", "a list of simulations, or files in a folder simulations beside it")
    nameless: Counter[str] = Counter()
    trials, tasks = info.get("num_trials"), part(value, "tasks", list)
    scenarios = {name(task, "id"): json.dumps(task.get("user_scenario"), sort_keys=True, default=str) for task in tasks}
    found = []
    for place, simulation in enumerate(simulations, 1):
        task = name(simulation, "task_id", place)
        if simulation.get("trial") is None:
            trial, nameless[task] = str(nameless[task]), nameless[task] + 1
        else:
            trial = name(simulation, "trial", place)
        code, detail = _outcome(simulation, place)
        reward = number(take(simulation["reward_info"], "reward", place), "reward", place) if code in (PASS, FAIL) else None
        found.append(Row(candidate, task, trial, code, place, detail, domain or None, scenarios.get(task, ""), {"score": reward}))
    simulator = text(info, "user_info", "llm")
    facts = Facts(
        version=text(info, "git_commit")[:12],
        task=domain,
        scorer="reward",
        grader=f"user simulator {simulator}" if simulator else "",
        created=text(value, "timestamp"),
        notes=(f"the candidate {quote(candidate)} is what agent_info says; a submission may run something else under it",),
    )
    return Rows(
        facts,
        found,
        list(scenarios),
        [str(n) for n in range(trials)] if type(trials) is int and 0 < trials < 10**6 and not nameless else [],
    )


def _folder(file: Path) -> list[Any]:
    found = []
    for path in sorted((file.parent / "simulations").glob("*.json"), key=lambda path: natural(path.name)):
        try:
            found.append(load(path.read_bytes()))
        except InputError as error:
            raise error.at(path) from None
    return found


def _outcome(simulation: dict[str, Any], place: int) -> tuple[int, str]:
    graded, ended = take(simulation, "reward_info", place), text(simulation, "termination_reason")
    reward = number(take(graded, "reward", place), "reward", place) if graded is not None else None
    if reward is not None and is_one(reward):
        return PASS, ""
    if reward is None or ended in _NO_VERDICT:
        word = "timeout" if "timeout" in ended else "error" if "error" in ended else "ungraded"
        return CODE[word], ended or "no reward"
    if not 0 <= reward <= 1:
        raise InputError(f"reward {quote(str(graded['reward']))}", "a number from 0 to 1", "check the file", row=place)
    return FAIL, ended if ended in ("max_steps", "too_many_errors") else ""


FORMAT = Format(
    "tau2-bench results",
    "info.agent_info, tasks and simulations",
    lambda value: has(value, "info") and has(value["info"], "agent_info") and ("simulations" in value or "tasks" in value),
    rows,
    ("task",),
)
