"""tau-bench result files: a JSON list of {task_id, trial, reward, info}. The candidate is in the file name only.

A reward within 1e-6 of 1 is a pass. A harness error is stored as reward 0 with ``info.error``; here it stays missing, with
its reason, until a rule counts it as fail. Source: sierra-research/tau-bench; its pass^k is ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..campaign import CODE, FAIL, PASS
from ..errors import InputError
from ._json import is_one, name, number, refuse, take, text
from ._rows import Facts, Format, Options, Row, Rows, has


def rows(file: Path, value: Any, _options: Options) -> Rows:
    """One candidate's trials, in file order."""
    candidate = file.name.removesuffix(".gz").removesuffix(".json")
    if not candidate.strip():
        raise InputError("a file name without a candidate", "the candidate's name before .json", "rename the file")
    found, kinds = [], dict[tuple[str, str], type]()
    for place, trial in enumerate(value, 1):
        task, repetition = name(trial, "task_id", place), name(trial, "trial", place)
        for key, text_of in (("task_id", task), ("trial", repetition)):
            if kinds.setdefault((key, text_of), type(trial[key])) is not type(trial[key]):
                refuse(trial[key], key, f"one kind of id; another entry says {text_of} as text or as a number", place)
        code, detail = _outcome(trial, place)
        reward = number(trial["reward"], "reward", place) if code in (PASS, FAIL) else None
        found.append(
            Row(
                candidate,
                task,
                repetition,
                code,
                place,
                detail,
                identity=text(trial, "info", "task", "instruction"),
                numbers={"score": reward},
            )
        )
    return Rows(Facts(scorer="reward", notes=("the candidate is named after the file, which does not name it",)), found)


def _outcome(trial: dict[str, Any], place: int) -> tuple[int, str]:
    reward = number(take(trial, "reward", place), "reward", place)
    if reward is not None and is_one(reward):
        return PASS, ""
    if text(trial, "info", "error"):
        return CODE["error"], text(trial, "info", "error")[:500]
    if reward is None:
        return CODE["ungraded"], "no reward"
    if not 0 <= reward <= 1:
        refuse(trial["reward"], "reward", "a number from 0 to 1, or null", place)
    return FAIL, ""


FORMAT = Format(
    "tau-bench results",
    "a list of task_id, trial and reward",
    lambda value: type(value) is list and bool(value) and has(value[0], "task_id", "reward") and "simulations" not in value[0],
    rows,
)
