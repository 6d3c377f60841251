"""terminal-bench 0.1 ``results.json``: one row per trial, ``is_resolved`` true, false or null.

The harness counts null as not resolved; here it is missing, with ``failure_mode`` as its reason. A trial whose agent timed
out and that passed has passed. The candidate is in ``run_metadata.json`` beside it, else it is the folder.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..campaign import CODE, FAIL, PASS
from ._json import load, name, number, refuse, take, text
from ._rows import OF_THE_FILE, Facts, Format, Options, Row, Rows, disagreement, has, n_of

ONLY = "results.json"  # the one file of the tool's folders that holds results
_TRIAL = re.compile(r"\.([0-9]{1,6})-of-([0-9]{1,6})(?:\.|$)")


def rows(file: Path, value: Any, _options: Options) -> Rows:
    """One run's trials."""
    entries = take(value, "results")
    if not isinstance(entries, list) or not entries:
        refuse(entries, "results", "a list of trials")
    metadata = _beside(file)
    own = " with ".join(filter(None, (text(metadata, "agent_name"), text(metadata, "model_name"))))
    most, found = 0, []
    for place, trial in enumerate(entries, 1):
        task, given = name(trial, "task_id", place), _TRIAL.search(text(trial, "trial_name"))
        several = int(given[2]) if given else 1
        most = max(most, several)
        code, detail = _outcome(trial, place)
        found.append(Row(own or file.parent.name, task, given[1] if given and several > 1 else OF_THE_FILE, code, place, detail))
    version = "@".join(filter(None, (text(metadata, "dataset_name"), text(metadata, "dataset_version"))))
    resolved, null = sum(row.code == PASS for row in found), sum(row.code not in (PASS, FAIL) for row in found)
    accuracy = number(value.get("accuracy"), "accuracy")
    notes = [
        *([] if own else ["no run_metadata.json beside it: the candidate is named after the folder"]),
        *disagreement("accuracy", accuracy, Fraction(resolved, len(found))),
        *([f"{n_of(null, 'trial')} without a verdict, which the harness counts as not resolved"] if null else []),
    ]
    for key, n in (("n_resolved", resolved), ("n_unresolved", len(found) - resolved)):
        if key in value and value[key] != n:
            notes.append(f"the file counts {value[key]} as {key}; its rows give {n}")
    planned = [str(n) for n in range(1, most + 1)] if most > 1 else []
    return Rows(
        Facts(dataset=version, scorer="is_resolved", notes=tuple(notes)), found, list(dict.fromkeys(r.instance for r in found)), planned
    )


def _beside(file: Path) -> Any:
    metadata = file.with_name("run_metadata.json")
    return load(metadata.read_bytes()) if metadata.is_file() else {}


def _outcome(trial: dict[str, Any], place: int) -> tuple[int, str]:
    resolved, mode = take(trial, "is_resolved", place), text(trial, "failure_mode")
    if type(resolved) is bool:
        return (PASS if resolved else FAIL), "" if mode in ("unset", "none") else mode
    if resolved is not None:
        refuse(resolved, "is_resolved", "true, false or null", place)
    word = "timeout" if "timeout" in mode else "error" if "agent_error" in mode else "ungraded"
    return CODE[word], mode or "is_resolved is null"


FORMAT = Format(
    "terminal-bench results",
    "results of task_id and is_resolved",
    lambda value: (
        has(value, "results") and isinstance(value["results"], list) and has((value["results"] or [{}])[0], "task_id", "is_resolved")
    ),
    rows,
)
