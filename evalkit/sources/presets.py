"""Formats that are plain rows: a declared mapping each, read by one function.

A path goes down by dots (``data.correct``); ``/`` starts at the document, or at the first line that has it; ``|`` tries the
next; ``*`` stands for any key, and where it is the last part of an outcome the caller chooses one by ``scorer``. The
mappings of LangSmith, Braintrust and Langfuse follow their documentation: no published export was there to check them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from .._exact import measurement
from ..campaign import CODE, PASS
from ..errors import InputError, quote
from ._json import Lines, number, part, refuse, text
from ._rows import OF_THE_FILE, Facts, Format, Options, Row, Rows, choose, disagreement, verdict
from .table import _parse

_UNCHECKED = "this mapping follows the documentation of the tool; compare a few cells with what the tool shows"

PRESETS: dict[str, dict[str, str]] = {
    "METR runs": {
        "keys": "task_id score_binarized",
        "candidate": "alias|model",
        "instance": "task_id",
        "repetition": "order",
        "outcome": "score_binarized",
        "error": "fatal_error_from",
        "group": "task_family",
    },
    "OpenAI evals log": {
        "keys": "spec.completion_fns",
        "where": "type=match|error",
        "candidate": "/spec.completion_fns.0",
        "instance": "sample_id",
        "outcome": "data.correct",
        "error": "data.message|data.error|type",
        "task": "/spec.eval_name",
        "published": "/final_report.accuracy",
    },
    "DeepEval test run": {
        "keys": "testCases testPassed",
        "rows": "testCases",
        "candidate": "/identifier",
        "instance": "name",
        "repetition": "order",
        "outcome": "success",
        "error_beats_fail": "metricsData.*.error",
        "identity": "input",
        "group": "metadata.group",
    },
    "LangSmith experiment": {
        "keys": "example_id execution_time",
        "candidate": "experiment_name",
        "instance": "example_id",
        "repetition": "order",
        "outcome": "feedback.*",
        "error": "error",
        "note": _UNCHECKED,
    },
    "Braintrust experiment": {
        "keys": "root_span_id scores",
        "candidate": "experiment_name|experiment_id",
        "instance": "dataset_record_id|origin.id|input",
        "repetition": "order",
        "outcome": "scores.*",
        "error": "error",
        "note": _UNCHECKED,
    },
    "Langfuse dataset run": {
        "keys": "dataset_item_id dataset_run_name",
        "candidate": "dataset_run_name",
        "instance": "dataset_item_id",
        "repetition": "order",
        "outcome": "scores.*",
        "error": "status_message",
        "note": _UNCHECKED,
    },
}


def at(value: Any, path: str) -> Any:
    """What a path leads to, else None; a key that itself has dots, as a flat table has them, comes first."""
    for one in path.split("|"):
        found = next(_walk(value, one), None)
        if found is not None:
            return found
    return None


def _walk(value: Any, path: str) -> Iterator[Any]:
    if isinstance(value, dict) and path in value:
        yield from [] if value[path] is None or value[path] == "" else [value[path]]
        return
    key, _, rest = path.partition(".")
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, below in inside:
        if key in (str(name), "*"):
            if rest:
                yield from _walk(below, rest)
            elif below is not None and below != "":
                yield below


def lines(data: bytes) -> Lines | None:
    """The rows of a CSV whose header has the keys of a mapping."""
    header = set(data[:100_000].split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip().replace('"', "").split(","))
    if not any(header >= set(preset["keys"].split()) for preset in PRESETS.values()):
        return None
    table = _parse(data, ())
    return Lines([dict(zip(table.header, row, strict=True)) for row in zip(*table.columns.values(), strict=True)], table.rows)


def _mine(value: Any, *, preset: dict[str, str]) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return all(next(_walk(first, key), None) is not None or (isinstance(first, dict) and key in first) for key in preset["keys"].split())


def _rows(file: Path, value: Any, options: Options, *, preset: dict[str, str]) -> Rows:
    """The rows that a mapping declares."""
    listed = at(value, preset["rows"]) if "rows" in preset else value
    entries = listed if isinstance(listed, list) else [listed]
    numbered = zip(listed.numbers if isinstance(listed, Lines) else range(1, len(entries) + 1), entries, strict=True)
    key, _, words = preset.get("where", "").partition("=")
    taken = [(place, row) for place, row in numbered if not key or str(at(row, key)) in words.split("|")]
    if not taken:
        raise InputError(
            "no rows" + (f" with {preset['where']}" if key else ""), "at least one result", "check that the run wrote its results"
        )
    outcome, scorer = _outcome_path([row for _, row in taken], preset["outcome"], options.scorer)
    document = value if isinstance(value, Lines) else [value]

    def said(path: str, row: Any) -> Any:
        if path.startswith("/"):
            return next((found for line in document if (found := at(line, path[1:])) is not None), None)
        return at(row, path)

    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for place, row in taken:
        candidate = _id(said(preset["candidate"], row), "", place) or file.name.removesuffix(".gz").rsplit(".", 1)[0]
        instance = _id(at(row, preset["instance"]), preset["instance"], place)
        seen[candidate, instance] += 1
        repetition = str(seen[candidate, instance]) if preset.get("repetition") == "order" else OF_THE_FILE
        code, score, detail = _result(row, outcome, preset, options.passes, place)
        group = at(row, f"metadata.{options.group}|{options.group}" if options.group else preset.get("group", "group"))
        if options.group and group is None:
            raise InputError(f"no {quote(options.group)}", "that key in every row or its metadata", "choose another group", row=place)
        rows.append(
            Row(
                candidate,
                instance,
                repetition,
                code,
                place,
                detail,
                None if group is None else str(group),
                text(row, preset.get("identity", "")),
                {"score": score},
            )
        )
    share = Fraction(sum(row.code == PASS for row in rows), len(rows))
    published = said(preset.get("published", "published"), None)
    unnamed = (
        [] if said(preset["candidate"], taken[0][1]) is not None else ["the candidate is named after the file, which does not name it"]
    )
    notes = [*unnamed, *([preset["note"]] if "note" in preset else [])]
    notes += disagreement("a rate of", published if published is None else number(published, "published"), share)
    task = said(preset["task"], None) if "task" in preset else ""
    return Rows(Facts(task=str(task or ""), scorer=scorer, notes=tuple(notes)), rows)


def _outcome_path(rows: list[Any], path: str, wanted: str) -> tuple[str, str]:
    if not path.endswith(".*"):
        return path, path
    stem = path[:-2]
    names = dict.fromkeys(
        str(key)
        for row in rows
        if isinstance(row, dict)
        for key in part(row, stem, dict) or [k.removeprefix(f"{stem}.") for k in row if k.startswith(f"{stem}.")]
    )
    scorer = choose(list(names), wanted, "score")
    return f"{stem}.{scorer}", scorer


def _id(value: Any, key: str, place: int) -> str:
    if (type(value) is int or isinstance(value, str)) and str(value).strip():
        return str(value).strip()
    return refuse(value, key, "text or a whole number", place) if key else ""


def _result(row: Any, outcome: str, preset: dict[str, str], passes: str, place: int) -> tuple[int, Fraction | None, str]:
    """A recorded verdict outranks an error, except where a mapping says that the tool writes a fail for an error."""
    value, error = at(row, outcome), at(row, preset.get("error", "")) or at(row, preset.get("error_beats_fail", ""))
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if isinstance(value, str):
        score: Fraction | None = measurement(value)
    elif isinstance(value, bool):
        score = Fraction(value)
    elif value is None or isinstance(value, int | Decimal):
        score = number(value, outcome, place)
    else:
        refuse(value, outcome, "true, false or a number", place)
    if error is not None and (score is None or ("error_beats_fail" in preset and not score)):
        return CODE["timeout" if "timeout" in str(error).lower() else "error"], None, str(error)[:500]
    return verdict(score, passes, outcome, place), score, "" if score is not None else f"no {outcome}"


FORMATS = tuple(
    Format(
        name,
        preset["keys"].replace(" ", " and "),
        partial(_mine, preset=preset),
        partial(_rows, preset=preset),
        ("passes", "group", "scorer") if preset["outcome"].endswith("*") else ("passes", "group"),
    )
    for name, preset in PRESETS.items()
)
