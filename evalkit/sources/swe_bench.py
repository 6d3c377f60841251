"""SWE-bench: a harness report (lists of ids, new and old key names), and leaderboard entries with ``per_instance_details``.

The lists part the data set: resolved passes, unresolved fails, the others are missing with their reason. An instance that
was never submitted stays in the denominator: 1 resolved of 1 submitted is 1 of 91 where the report names 91.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from .._exact import decimal
from ..campaign import CODE, FAIL, PASS
from ..errors import InputError, listing, quote
from ._json import name, number, part, refuse, take, text
from ._rows import OF_THE_FILE, Facts, Format, Options, Row, Rows, has, n_of

# The first list that names an instance decides; old reports have the names on the right.
_LISTS = (
    (("resolved_ids", "resolved"), PASS, ""),
    (("unresolved_ids", "unresolved"), FAIL, ""),
    (("error_ids", "test_errored", "install_fail", "reset_failed"), CODE["error"], "error"),
    (("test_timeout",), CODE["timeout"], "test timeout"),
    (("empty_patch_ids", "no_generation"), CODE["ungraded"], "empty patch"),
    (("no_apply",), CODE["ungraded"], "the patch did not apply"),
    (("no_logs",), CODE["ungraded"], "no log"),
    (("incomplete_ids", "incomplete"), CODE["absent"], "not submitted, or not run"),
)
_RAN = ("completed_ids", "completed", "applied", "with_logs")  # where old reports name no unresolved ids


def rows(file: Path, value: Any, _options: Options) -> Rows:
    """One attempt of one candidate, or the entries of a leaderboard."""
    found: list[Row] = []
    notes: list[str] = []
    for place, entry in enumerate(_entries(value), 1):
        if not isinstance(entry, dict):
            raise InputError(quote(entry), "an object with per_instance_details", "check the file", row=place)
        if "per_instance_details" in entry:
            _leaderboard(entry, found, notes)
        else:
            _report(file, entry, found, notes)
    return Rows(Facts(version=text(value, "schema_version"), scorer="resolved", notes=tuple(notes)), found)


def _entries(value: Any) -> list[Any]:
    if has(value, "leaderboards"):
        return [
            entry
            for board in part(value, "leaderboards", list)
            for entry in part(board, "results", list)
            if has(entry, "per_instance_details")
        ]
    return value if isinstance(value, list) else [value]


def _report(file: Path, report: dict[str, Any], found: list[Row], notes: list[str]) -> None:
    stem = file.name.removesuffix(".gz").removesuffix(".json")
    candidate = stem.rpartition(".")[0] or stem
    notes.append("the candidate is named after the file, which does not name it")
    decided: dict[str, Row] = {}
    for keys, code, detail in _LISTS:
        for key in keys:
            for place, instance in enumerate(_ids(report, key), 1):
                if instance in decided and code in (PASS, FAIL):
                    raise InputError(f"{quote(instance)} twice, the second time in {key}", "each instance in one list", "check the report")
                decided.setdefault(instance, Row(candidate, instance, OF_THE_FILE, code, place, detail, _project(instance)))
    ran = [instance for key in _RAN for instance in _ids(report, key)]
    if not any(key in report for key in (*_LISTS[1][0], *_RAN)):
        raise InputError(f"lists {listing(list(report), 12)}", "a list of the unresolved instances, or of those that ran",
                         "read the report of the harness: a list of the resolved alone has no denominator")  # fmt: skip
    for place, instance in enumerate(ran, 1):
        decided.setdefault(instance, Row(candidate, instance, OF_THE_FILE, FAIL, place, "", _project(instance)))
    flagged = [i for key in ("infra_failure_ids", "ambiguous_failure_ids") for i in _ids(report, key)]
    if flagged:
        notes.append(f"{n_of(len(flagged), 'result')} that the harness itself doubts: {listing(flagged)}")
    total, submitted, resolved = (
        report.get("total_instances"),
        report.get("submitted_instances"),
        sum(r.code == PASS for r in decided.values()),
    )
    if type(total) is int and total != len(decided):
        notes.append(f"the file counts {total} instances and names {len(decided)}; declare an inventory to see the others")
    if type(submitted) is int and type(total) is int and submitted < total:
        notes.append(f"{submitted} of {total} instances submitted: {resolved} resolved is {resolved} of {total}, not of {submitted}")
    found += decided.values()


def _ids(report: dict[str, Any], key: str) -> list[str]:
    listed = take(report, key) if key in report else []
    if not isinstance(listed, list) or not all(isinstance(instance, str) and instance for instance in listed):
        refuse(listed, key, "a list of instance ids")
    if len(set(listed)) != len(listed):
        twice = next(instance for instance in listed if listed.count(instance) > 1)
        raise InputError(f"{quote(twice)} twice in {key}", "each instance once", "check the report")
    return listed


def _project(instance: str) -> str:
    return instance.split("__")[0]


def _leaderboard(entry: dict[str, Any], found: list[Row], notes: list[str]) -> None:
    candidate = text(entry, "name") or name(entry, "folder")
    details = take(entry, "per_instance_details")
    if not isinstance(details, dict) or not details:
        refuse(details, "per_instance_details", "an object of instances")
    for place, (instance, detail) in enumerate(details.items(), 1):
        resolved = take(detail, "resolved", place)
        if type(resolved) is not bool and resolved is not None:
            refuse(resolved, "resolved", "true, false or null", place)
        code = CODE["ungraded"] if resolved is None else PASS if resolved else FAIL
        cost = number(detail.get("cost"), "cost", place)
        found.append(Row(candidate, instance, OF_THE_FILE, code, place, "", _project(instance), numbers={"cost": cost}))
    passed = sum(take(detail, "resolved") is True for detail in details.values())
    published, given = number(entry.get("resolved"), "resolved"), Fraction(100 * passed, len(details))
    if published is not None and abs(published - given) >= Fraction(1, 100):
        notes.append(
            f"{quote(candidate)} publishes {decimal(published, 2)}; its rows give {passed} of {len(details)} = {decimal(given, 2)}"
        )


FORMAT = Format(
    "SWE-bench report",
    "lists resolved_ids and unresolved_ids, or per_instance_details",
    lambda value: (
        has(value, "resolved_ids")
        or (has(value, "resolved") and isinstance(value["resolved"], list))
        or has(value, "leaderboards")
        or has(value[0] if isinstance(value, list) and value else value, "per_instance_details")
    ),
    rows,
)
