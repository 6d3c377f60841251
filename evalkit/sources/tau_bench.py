"""tau-bench result files: a JSON list of {task_id, trial, reward, info}. The candidate is in the file name only.

A reward within 1e-6 of 1 is a pass. A harness error is stored as reward 0 with ``info.error``; here it stays missing, with
its reason, until a rule counts it as fail. Source: sierra-research/tau-bench; its pass^k is ours.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ..campaign import CODE, Campaign, Inventory, Labels, assemble
from ..errors import InputError, quote

_NEEDED = ("task_id", "trial", "reward")
_TOLERANCE = Fraction(1, 10**6)


def campaign(data: bytes, *, candidate: str, inventory: Inventory | None = None) -> Campaign:
    """One candidate's campaign from the bytes of a tau-bench result file.

    Raises: InputError, with the place in the list, for anything that is not a tau-bench result.
    """
    trials = _load(data)
    if not isinstance(trials, list) or not all(isinstance(t, dict) and all(k in t for k in _NEEDED) for t in trials):
        raise InputError(
            "JSON of another shape", "a tau-bench list of " + ", ".join(_NEEDED), "check the format; CSV and tau-bench are read"
        )
    tasks, repetitions, codes, details = [], [], [], []
    for place, trial in enumerate(trials, 1):
        for key in ("task_id", "trial"):
            if type(trial[key]) is not int and not isinstance(trial[key], str):
                raise InputError(f"{key} {quote(trial[key])} in entry {place}", "a whole number or text", "correct the entry")
        tasks.append(str(trial["task_id"]))
        repetitions.append(str(trial["trial"]))
        code, detail = _outcome(trial, place)
        codes.append(code)
        details.append(detail)
    return assemble(
        Labels.of([candidate] * len(trials)),
        Labels.of(tasks),
        Labels.of(repetitions),
        np.array(codes, np.uint8),
        details=details,
        inventory=inventory,
        row_numbers=range(1, len(trials) + 1),
    )


def _outcome(trial: dict[str, Any], place: int) -> tuple[int, str]:
    info, reward = trial.get("info"), trial["reward"]
    if isinstance(info, dict) and info.get("error"):
        return CODE["error"], str(info["error"])[:500]
    if reward is None:
        return CODE["ungraded"], "reward is null"
    if isinstance(reward, bool) or not isinstance(reward, (int, Decimal)) or not 0 <= reward <= 1 + _TOLERANCE:
        raise InputError(f"reward {quote(reward)} in entry {place}", "a number from 0 to 1, or null", "correct the entry")
    return CODE["pass"] if abs(1 - Fraction(reward)) <= _TOLERANCE else CODE["fail"], ""


def _load(data: bytes) -> Any:
    def refuse(text: str) -> Any:
        raise InputError(f"the number {quote(text)}", "finite numbers", "a result that is not a number is not a result; correct it")

    def whole(text: str) -> int:
        return int(text) if len(text) <= 18 else refuse(text)

    try:
        return json.loads(data.decode("utf-8-sig"), parse_float=Decimal, parse_constant=refuse, parse_int=whole)
    except UnicodeDecodeError as error:
        raise InputError(f"a byte that is not UTF-8 at offset {error.start}", "UTF-8 text", "check the file") from None
    except json.JSONDecodeError as error:
        raise InputError(f"JSON that breaks ({error.msg})", "a whole JSON file", "was the run cut short?", row=error.lineno) from None
    except RecursionError:
        raise InputError("JSON nested beyond any result", "a list of trials", "check that this is the right file") from None
