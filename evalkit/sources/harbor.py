"""harbor ``result.json``, one file per trial, beside the job's own ``result.json``.

The verdict is ``verifier_result.rewards``; it outranks ``exception_info``, so a trial that timed out and passed has passed.
Trials carry a random suffix and no number: they are numbered in order of their start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..campaign import CODE
from ..errors import InputError
from ._json import load, name, number, refuse, take, text
from ._rows import Facts, Format, Options, Row, Rows, choose, has, verdict

ONLY = "result.json"


def companion(value: Any) -> bool:
    """The job's own file: totals, no trial."""
    return has(value, "n_total_trials")


def rows(_file: Path, value: Any, options: Options) -> Rows:
    """One trial."""
    agent = take(value, "agent_info")
    model = text(agent, "model_info", "name")
    candidate = name(agent, "name") + (f" with {model}" if model else "")
    code, detail, score = _outcome(value, options)
    group = text(value, options.group or "source")
    if options.group and not group:
        raise InputError(f"no {options.group}", "that key in every trial", "choose another group")
    row = Row(
        candidate,
        name(value, "task_name"),
        name(value, "trial_name"),
        code,
        1,
        detail,
        group or None,
        text(value, "task_checksum"),
        numbers={"score": score},
    )
    return Rows(Facts(scorer=options.scorer or "reward", created=text(value, "started_at")), [row])


def _outcome(trial: dict[str, Any], options: Options) -> tuple[int, str, Any]:
    verified, exception = take(trial, "verifier_result"), trial.get("exception_info")
    rewards = take(verified, "rewards") if verified is not None else None
    if isinstance(rewards, dict) and rewards:
        key = choose(list(rewards), options.scorer, "reward")
        score = number(take(rewards, key), key)
        if score is not None:
            return verdict(score, options.passes, key), text(exception, "exception_type") if exception else "", score
    elif rewards is not None and rewards != {}:
        refuse(rewards, "verifier_result.rewards", "an object of rewards by name")
    kind = text(exception, "exception_type")
    word = "timeout" if "Timeout" in kind else "cancelled" if "Cancel" in kind else "error" if kind else "ungraded"
    return CODE[word], ": ".join(filter(None, (kind, text(exception, "exception_message")[:400]))) or "no reward", None


def _total(job: Path) -> Any:
    totals = load(job.read_bytes()) if job.is_file() else {}
    return totals.get("n_total_trials") if companion(totals) else None


def together(parts: Sequence[tuple[Path, Rows]]) -> list[tuple[Path, Rows]]:
    """The trials of each job folder as one, numbered in order of their start; a job that planned more is unfinished."""
    jobs: dict[Path, list[tuple[str, Path, Row, Facts]]] = defaultdict(list)
    for file, part in parts:
        jobs[file.parent.parent].append((part.facts.created, file, part.rows[0], part.facts))
    merged = []
    for folder, trials in jobs.items():
        seen: Counter[tuple[str, str]] = Counter()
        found = []
        for place, (_, _, row, _) in enumerate(sorted(trials, key=lambda trial: trial[:2]), 1):
            seen[row.candidate, row.instance] += 1
            found.append(replace(row, repetition=str(seen[row.candidate, row.instance]), place=place))
        planned = _total(folder / ONLY)
        missing = f"{len(found)} of the {planned} trials that the job planned" if type(planned) is int and planned > len(found) else ""
        merged.append((folder, Rows(replace(trials[0][3], unfinished=missing), found)))
    return merged


FORMAT = Format(
    "harbor trials",
    "task_name, trial_name and agent_info",
    lambda value: has(value, "task_name", "trial_name", "agent_info"),
    rows,
    ("scorer", "passes", "group"),
)
