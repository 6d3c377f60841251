"""Any supported input as a canonical table: a campaign of one row per cell, or a tally of one row per period and group.

A cell that begins with ``=``, ``+``, ``-`` or ``@``, or with a control character, may run as a formula where a spreadsheet opens the file. An id is written
as it is, since another id would be another instance, and is named in a note. A detail is commentary, no part of the digest:
there an apostrophe goes before such a text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ._exact import in_order
from .campaign import OUTCOMES, Campaign, Column
from .errors import EvalkitError, InputError, listing, quote
from .records import _strict_json, canonical, csv_text, write_whole
from .reweighting import Tally
from .sources import _content, files_of, read_campaign
from .sources.table import TALLY, Requests

__all__ = ["campaign_csv", "regroup", "tabulate", "tabulate_tally", "tally_csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # the wide ones too: a spreadsheet may narrow them
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def tabulate(
    paths: Paths,
    output: str | os.PathLike[str],
    *,
    columns: str = "",
    candidate_names: str = "",
    scorer: str = "",
    passes: str = "",
    group: str = "",
    task: str = "",
    repetition: str = "repetition",
    accept: str = "",
    keep: str = "",
    inventory: str = "",
) -> tuple[str, ...]:
    """Write the canonical campaign table of any supported input, and return the notes: what was read, and what to know.

    Every planned cell is a row, also one that no row filled (``absent``). Read again, with the same inventory where there was
    one, the table gives the same digest. The options are those of ``read_campaign``.
    """
    target = _target(output, files_of(paths))
    campaign = read_campaign(
        paths, candidate_names=candidate_names, scorer=scorer, passes=passes, group=group, task=task, repetition=repetition,
        accept=accept, keep=keep, columns=columns, inventory=inventory,
    )  # fmt: skip
    _write(target, campaign_csv(campaign))
    ids = [*campaign.candidates, *campaign.instances, *campaign.repetitions, *(campaign.groups or ()), *(campaign.clusters or ())]
    again = ("read it again with the same inventory",) if campaign.declared else ()
    return (*campaign.notes, f"{campaign.codes.size} cells written", *again, *_formulas(ids))


def tabulate_tally(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: str = "",
    inventory: str = "",
    grouping: str = "",
    grouping_rule: str = "",
    grader_version: str = "",
    case_set: str = "",
) -> tuple[str, ...]:
    """Write the canonical tally of production rows or ready-made counts in CSV, TSV, Parquet or JSON, and return the notes.

    ``columns`` are ``Requests`` as text; ``inventory`` is a table of the planned requests, ``grouping`` a group-mapping file.
    """
    from .sources import frame  # imports Polars

    target = _target(output, [Path(path), *([Path(inventory)] if inventory else []), *([Path(grouping)] if grouping else [])])
    given = {"grouping_rule": grouping_rule, "grader_version": grader_version, "case_set": case_set}
    plan = frame.scan(Path(inventory), _content(Path(inventory))) if inventory else None
    try:
        rows = frame.scan(Path(path), _content(Path(path)))
        tallies = frame.tally(rows, columns=Requests.parse(columns), inventory=plan, bindings={k: v for k, v in given.items() if v})
    except EvalkitError as error:
        raise error.at(path) from None
    except frame.BREAKS as error:
        raise frame.unreadable(error).at(path) from None
    if grouping:
        tallies = regroup(tallies, grouping)
    _write(target, tally_csv(tallies))
    notes = next(iter(tallies.values())).notes
    counted = (f"{sum(sum(t.assessed) for t in tallies.values())} of {sum(sum(t.requested) for t in tallies.values())} requests assessed",)
    return notes + counted + _formulas([*tallies, *(group for t in tallies.values() for group in t.groups)])


def campaign_csv(campaign: Campaign) -> str:
    """The canonical table, one row per planned cell, by candidate, instance and repetition in natural order."""
    c_count, i_count, r_count = len(campaign.candidates), len(campaign.instances), len(campaign.repetitions)
    n = campaign.codes.size

    def per_instance(values: Sequence[str]) -> list[str]:
        return [value for value in values for _ in range(r_count)] * c_count

    candidates = [name for name in campaign.candidates for _ in range(i_count * r_count)]
    instances, repetitions = per_instance(campaign.instances), list(campaign.repetitions) * (c_count * i_count)
    columns: dict[str, Iterable[object]] = {
        "candidate": candidates,
        "instance": instances,
        "repetition": repetitions,
        "outcome": [OUTCOMES[code] for code in _in_rows(campaign.codes).tolist()],
    }
    if any(campaign.details.values()):
        details = campaign.details
        columns["detail"] = [_commentary(details.get(cell, "")) for cell in zip(candidates, instances, repetitions, strict=True)]
    columns |= {name: per_instance(values) for name, values in (("group", campaign.groups), ("cluster", campaign.clusters)) if values}
    columns |= {name: [value] * n for name, value in campaign.bindings.items()}
    columns |= {name: _numbers(name, column) for name, column in campaign.columns.items()}
    return _csv(columns)


def tally_csv(tallies: Mapping[str, Tally]) -> str:
    """The canonical tally, one row per period and group in natural order."""
    rows = [
        (period, *row, *t.bindings.values())
        for period, t in ((period, tallies[period]) for period in in_order(tallies))
        for row in zip(t.groups, t.passed, t.assessed, t.requested, strict=True)
    ]
    header = (*TALLY, *next(iter(tallies.values())).bindings)
    return _csv(dict(zip(header, zip(*rows, strict=True), strict=True)))


def regroup(tallies: Mapping[str, Tally], grouping: str | os.PathLike[str]) -> dict[str, Tally]:
    """The same requests under a coarser grouping rule, from a group-mapping file.

    The file is JSON: ``{"grouping_rule": id, "groups": {group: new group}, "regroups": id of the old rule, if it had one}``. The
    new rule is the id with the digest of the mapping, since another mapping under the same id would be another rule.
    Raises: InputError for a group that the mapping does not name, with its counts.
    """
    record = _strict_json(Path(grouping))
    groups, rule, old = record.get("groups"), record.get("grouping_rule"), record.get("regroups", "")
    if set(record) - {"grouping_rule", "groups", "regroups"} or not isinstance(groups, dict) or not groups:
        raise InputError(f"the keys {listing(list(record))}", "grouping_rule, groups and optionally regroups", "correct it", file=grouping)
    for text in (rule, *groups.values()):
        if not isinstance(text, str) or not text or text != text.strip():
            raise InputError(quote(text), "a name as text", "correct it", file=grouping)
    digest = hashlib.sha256(canonical({"grouping_rule": rule, "groups": groups}).encode()).hexdigest()
    found = {}
    for period, t in tallies.items():
        if old != t.bindings.get("grouping_rule", old):
            raise InputError(f"grouping_rule {quote(t.bindings['grouping_rule'])} in the tally of {quote(period)}",
                             f"{quote(old)}, which the mapping regroups", "use a mapping made for it", file=grouping)  # fmt: skip
        rows = list(zip(t.groups, t.passed, t.assessed, t.requested, strict=True))
        lacking = [f"{group} ({assessed} assessed of {requested})" for group, _, assessed, requested in rows if group not in groups]
        if lacking:
            raise InputError(f"groups that the mapping does not name: {listing(lacking, 12)}", "a new group for each", "add them",
                             file=grouping)  # fmt: skip
        counts: dict[str, tuple[int, ...]] = {}
        for group, *own in rows:
            counts[groups[group]] = tuple(a + b for a, b in zip(counts.get(groups[group], (0, 0, 0)), own, strict=True))
        bindings = MappingProxyType({**t.bindings, "grouping_rule": f"{rule} sha256:{digest}"})
        found[period] = replace(Tally.of(period, counts, bindings), notes=t.notes)
    return found


def _in_rows(cube: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    return cube.transpose(1, 2, 0).ravel()


def _numbers(name: str, column: Column) -> list[str]:
    """Each number as the decimal text that reads back as the same fraction."""
    texts: dict[int, str] = {}
    for numerator in np.unique(column.numerators[column.present]).tolist():
        texts[numerator] = _decimal(Fraction(numerator, column.denominator), name)
    pairs = zip(_in_rows(column.numerators).tolist(), _in_rows(column.present).tolist(), strict=True)
    return [texts[numerator] if there else "" for numerator, there in pairs]


def _decimal(number: Fraction, name: str) -> str:
    places, rest = 0, number.denominator
    for prime in (2, 5):
        n = 0
        while rest % prime == 0:
            rest, n = rest // prime, n + 1
        places = max(places, n)
    digits = str(abs(number.numerator * 10**places // number.denominator)) if rest == 1 else ""
    short = digits.rstrip("0") or "0"
    if not digits or len(short) > 40:
        raise InputError(f"{name} {number}", "a decimal of at most 40 digits", "no CSV can hold it exactly", column=name)
    return str(Decimal((number < 0, tuple(map(int, short)), len(digits) - len(short) - places if number else 0)))


def _commentary(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _formulas(ids: Sequence[str]) -> tuple[str, ...]:
    odd = [name for name in ids if name.startswith(_FORMULA)]
    note = f"{len(odd)} names begin like a formula ({listing(odd, 3)}): in a spreadsheet, import the columns as text"
    return (note,) if odd else ()


def _csv(columns: Mapping[str, Iterable[object]]) -> str:
    return csv_text([columns, *zip(*columns.values(), strict=True)])


def _target(output: str | os.PathLike[str], inputs: Sequence[Path]) -> Path:
    target = Path(output)
    if target.suffix.lower() != ".csv":
        raise InputError(f"output {quote(os.fspath(output))}", "a name that ends in .csv", "name a CSV file")
    if target.exists() and any(target.samefile(path) for path in inputs if path.exists()):
        raise InputError("an output that is an input", "another file", "name another output", file=target)
    return target


def _write(target: Path, text: str) -> None:
    try:
        write_whole(target, text)
    except OSError as error:
        raise InputError(f"no place to write ({error.strerror})", "a folder that exists", "make it, or name another", file=target) from None
