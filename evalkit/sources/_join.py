"""Files to one campaign: they must agree on what was measured, claim no cell twice, and leave no row unaccounted for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._exact import natural
from ..campaign import CODE, Campaign, Inventory, Labels, assemble
from ..errors import EvalkitError, InputError, listing, plain, quote
from ._rows import OF_THE_FILE, Row, Rows, n_of

UNLIKE = ("task", "task_version", "dataset", "scorer", "grader")  # what the files of a campaign share
ACCEPT = (*UNLIKE, "partial", "invalidated")

_MOST_PLANNED = 50_000_000
Part = tuple[Path, Rows]


def join(
    tool: str,
    parts: Sequence[Part],
    *,
    files: int,
    names: Mapping[str, str],
    accept: Sequence[str],
    keep: str,
    repetition: str,
    inventory: Inventory | None,
    notes: Sequence[str],
) -> Campaign:
    """One campaign from the files of one tool; a doubt is refused, or noted because the caller accepted it by name."""
    read = sum(len(part.rows) for _, part in parts)
    told = list(notes)
    kept = _without_retried(parts, keep, told)
    _refuse_unlike(kept, accept, told)
    _refuse_unfinished(kept, accept, told)
    numbered = _number(_named(kept, names), repetition)
    rows = [(file, row) for file, part in numbered for row in part.rows]
    _refuse_shared(rows)
    _refuse_unlike_instances(rows, accept, told)
    gaps = _gaps(numbered, inventory)
    campaign = _assemble(rows, gaps, inventory, told)
    told += _notes(kept)
    versions = plain(" and ".join(sorted({part.facts.version for _, part in kept} - {""})))
    superseded = f" + {read - len(rows)} superseded" if read != len(rows) else ""
    account = (
        f"{tool}{' ' * bool(versions)}{versions}: {n_of(files, 'file')}, {n_of(read, 'row')} read = {n_of(len(rows), 'cell')}{superseded}"
    )
    absent = [f"{n_of(len(gaps), 'planned cell')} without a row"] if gaps else []
    return replace(campaign, rows=read, notes=(account, *absent, *told))


def _notes(parts: Sequence[Part]) -> list[str]:
    """What the files say, each thing once, with the files that say it."""
    said: dict[str, list[str]] = defaultdict(list)
    for file, part in parts:
        for note in part.facts.notes:
            said[note].append(_short(file))
    return [f"{note} ({listing(files, 3)})" if len(parts) > 1 else note for note, files in said.items()]


def _short(file: Path) -> str:
    return plain("/".join(file.parts[-2:]))


def given_name(file: Path, own: str, names: Mapping[str, str]) -> tuple[str, str]:
    """The name that the caller gives, and by which key: a file, a folder of its path, the file's stem, or its own name.

    >>> given_name(Path("runs/a/results.json"), "gpt", {"a": "A"}), given_name(Path("a.json"), "gpt", {"gpt": "G"})
    (('A', 'a'), ('G', 'gpt'))
    """
    keys = [key for key in names if f"/{key}/" in f"/{file.as_posix()}/" or key in (str(file), file.name.split(".")[0])] or [own]
    if len({names.get(key, "") for key in keys}) > 1:
        raise InputError(f"candidate_names {listing(keys)} for one file", "one name", "write more of the path", file=file)
    return names.get(keys[0], own), keys[0]


def _named(parts: Sequence[Part], names: Mapping[str, str]) -> list[Part]:
    """The same rows under the names that the caller gives."""
    used: set[str] = set()
    renamed = []
    for file, part in parts:
        given = {own: given_name(file, own, names) for own in {row.candidate for row in part.rows}}
        used |= {key for _, key in given.values()}
        renamed.append((file, replace(part, rows=[_with(row, given[row.candidate][0], row.repetition) for row in part.rows])))
    if set(names) - used:
        raise InputError(
            f"candidate_names for {listing(sorted(set(names) - used))}",
            "names for a file, a folder or a candidate: " + listing([*sorted(used), *(_short(file) for file, _ in parts)], 8),
            "correct the name",
        )
    return renamed


def _with(row: Row, candidate: str, repetition: str) -> Row:
    """The same row in another cell; most rows stay where they are, and copying a million of them takes a while."""
    return row if (row.candidate, row.repetition) == (candidate, repetition) else replace(row, candidate=candidate, repetition=repetition)


def _without_retried(parts: Sequence[Part], keep: str, told: list[str]) -> list[Part]:
    """Where a run was retried, its files share a retry id: the last whole one may stand for them, if the caller says so."""
    by_run: dict[str, list[Part]] = defaultdict(list)
    for n, (file, part) in enumerate(parts):
        by_run[part.facts.retry_id or f"\0{n}"].append((file, part))
    kept = []
    for run, files in by_run.items():
        files.sort(key=lambda entry: (not entry[1].facts.unfinished, entry[1].facts.created))
        if len(files) > 1 and keep != "last":
            raise InputError(
                f"{len(files)} logs of the same run {quote(run)}: {listing([_short(file) for file, _ in files])}",
                "one log per run, since a retry holds the cells of the log that it retries",
                "name one of them, or keep the last whole one: keep='last'",
            )
        kept.append(files[-1])
        told += [
            f"{_short(file)}: superseded by {_short(files[-1][0])}, the last log of that run ({n_of(len(part.rows), 'row')} not counted)"
            for file, part in files[:-1]
        ]
    return kept


def _refuse_unlike(parts: Sequence[Part], accept: Sequence[str], told: list[str]) -> None:
    for fact in UNLIKE:
        said: dict[str, Path] = {}
        for file, part in parts:
            said.setdefault(str(getattr(part.facts, fact)), file)
        said.pop("", None)
        if len(said) < 2:
            continue
        shown = f"{fact} " + ", ".join(f"{quote(value)} in {_short(file)}" for value, file in list(said.items())[:4])
        if fact not in accept:
            raise InputError(shown, f"one {fact} in a campaign", (f"choose one: task={quote(next(iter(said)))}; " if fact == "task" else "read one of them, ")
                             + f"or accept the difference by name: accept={quote(fact)}")  # fmt: skip
        told.append(f"accepted a difference: {shown}")


def _refuse_unfinished(parts: Sequence[Part], accept: Sequence[str], told: list[str]) -> None:
    for file, part in parts:
        for word, found in (("partial", part.facts.unfinished), ("invalidated", part.facts.invalidated)):
            if found and word not in accept:
                raise InputError(found, "a run that finished" if word == "partial" else "a log that nobody withdrew",
                                 f"run it again, or take what is there: accept={quote(word)}", file=file)  # fmt: skip
            told += [f"{_short(file)}: accepted {found}"] if found else []


def _number(parts: Sequence[Part], repetition: str) -> list[Part]:
    """Repetition ids: the file's own, else one per file; by file or in row order where the caller says so."""
    if repetition not in ("", "repetition", "file", "order"):
        raise InputError(f"repetition {quote(repetition)}", "'repetition' (the file's own), 'file' or 'order'", "correct it")
    nth: Counter[str] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    numbered = []
    for file, part in sorted(parts, key=lambda entry: natural(str(entry[0]))):
        here = dict.fromkeys(row.candidate for row in part.rows)
        nth.update(here.keys())
        single = len({row.repetition for row in part.rows}) == 1

        def own(candidate: str, given: str, *, single: bool = single) -> str:
            number = str(nth[candidate])
            if repetition == "file":
                return number if single else f"{number}.{given}"
            return number if given == OF_THE_FILE else given

        rows = []
        for row in part.rows:
            if repetition == "order":
                seen[row.candidate, row.instance] += 1
                rows.append(_with(row, row.candidate, str(seen[row.candidate, row.instance])))
            else:
                rows.append(_with(row, row.candidate, own(row.candidate, row.repetition)))
        first = next(iter(here), "")
        planned = () if repetition == "order" else tuple(own(first, given) for given in part.repetitions)
        numbered.append((file, replace(part, rows=rows, repetitions=planned)))
    return numbered


def _shared(other: Path, first: Row, file: Path, row: Row) -> InputError:
    cell = f"cell ({quote(row.candidate)}, {quote(row.instance)}, repetition {quote(row.repetition)})"
    if other == file:
        return InputError(f"two rows for the {cell}", "one row per cell", "remove one; the kit does not choose between two results",
                          file=file, row=[first.place, row.place])  # fmt: skip
    return InputError(f"{cell} in {other} and in {file}", "each cell in one file",
                      "name the candidates by file if they are two (candidate_names), or number the runs if it is one: repetition='file'")  # fmt: skip


def _refuse_shared(rows: Sequence[tuple[Path, Row]]) -> None:
    claimed: dict[tuple[str, str, str], tuple[Path, Row]] = {}
    for file, row in rows:
        other, first = claimed.setdefault((row.candidate, row.instance, row.repetition), (file, row))
        if first is not row:
            raise _shared(other, first, file, row)


def _refuse_unlike_instances(rows: Sequence[tuple[Path, Row]], accept: Sequence[str], told: list[str]) -> None:
    """One id is one task: where files hold its text or a digest of it, that is the same in all of them."""
    alike: dict[str, tuple[Path, Row]] = {}
    unlike: dict[str, tuple[Path, Path]] = {}
    for file, row in rows:
        there, known = alike.setdefault(row.instance, (file, row)) if row.identity else (file, row)
        if known.identity != row.identity:
            unlike.setdefault(row.instance, (there, file))
    if not unlike:
        return
    there, file = next(iter(unlike.values()))
    found = f"{n_of(len(unlike), 'instance')} of two contents ({listing(list(unlike))}), in {_short(there)} and in {_short(file)}"
    if "dataset" not in accept:
        raise InputError(
            found, "the same instances in every file", "read runs of one data set together, or accept the difference: accept='dataset'"
        )
    told.append(f"accepted a difference: {found}")


def _gaps(parts: Sequence[Part], inventory: Inventory | None) -> list[Row]:
    """The cells that the files plan and that no row fills."""
    there = {(row.candidate, row.instance, row.repetition) for _, part in parts for row in part.rows}
    declared = None if inventory is None else set(inventory.instances)
    most = max((len(part.instances) * len(part.repetitions) for _, part in parts), default=0)
    if most > _MOST_PLANNED:
        raise InputError(f"a file that plans {most} cells", f"at most {_MOST_PLANNED}", "check that this is the right file")
    planned = {
        (candidate, instance, repetition)
        for _, part in parts
        for candidate in {row.candidate for row in part.rows}
        for instance in part.instances
        if declared is None or instance in declared
        for repetition in part.repetitions
    }
    return [Row(*cell, CODE["absent"], 0, "planned by the file, which has no row for it") for cell in sorted(planned - there)]


def _assemble(rows: Sequence[tuple[Path, Row]], gaps: Sequence[Row], inventory: Inventory | None, told: list[str]) -> Campaign:
    every = [*(row for _, row in rows), *gaps]
    group_of = {row.instance: row.group for _, row in rows if row.group is not None}
    groups = [group_of.get(row.instance) if row.group is None else row.group for row in every] if group_of else None
    if groups and inventory is not None and inventory.groups is None and set(inventory.instances) - set(group_of):
        told.append("groups not used: the inventory gives none for the instances without a row")
        groups = None
    if groups and None in groups:
        lost = listing(sorted({row.instance for row, group in zip(every, groups, strict=True) if group is None}))
        told.append(f"groups not used: no group is known for {lost}")
        groups = None
    keys = dict.fromkeys(key for row in every for key in row.numbers)
    try:
        return assemble(
            Labels.of([row.candidate for row in every]),
            Labels.of([row.instance for row in every]),
            Labels.of([row.repetition for row in every]),
            np.array([row.code for row in every], np.uint8),
            groups=Labels.of([group for group in groups if group is not None]) if groups else None,
            columns={key: [row.numbers.get(key) for row in every] for key in keys},
            details=[row.detail for row in every],
            inventory=inventory,
            row_numbers=range(len(every)),
        )
    except EvalkitError as error:
        at = [rows[i] for i in error.rows if i < len(rows)]
        files = {file for file, _ in at}
        error.rows = tuple(row.place for _, row in at) if len(files) == 1 else ()
        raise error.at(files.pop()) if len(files) == 1 else error from None
