"""A campaign: the planned grid of cells and what was observed of it.

A cell is one candidate x instance x repetition result. Nothing disappears: a planned cell without a verdict stays in the
grid with its reason, and a candidate that lacks one is incomplete, visible and never ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._exact import count, in_order
from .errors import CoverageError, InputError, RuleError, listing, quote

OUTCOMES = ("absent", "pass", "fail", "error", "timeout", "cancelled", "ungraded")
MISSING = tuple(word for word in OUTCOMES if word not in ("pass", "fail"))
CODE = MappingProxyType({word: code for code, word in enumerate(OUTCOMES)})
PASS, FAIL = CODE["pass"], CODE["fail"]
BINDINGS = ("grouping_rule", "grader_version", "case_set")

_WORDS = MappingProxyType({**CODE, "true": PASS, "1": PASS, "false": FAIL, "0": FAIL})
_UNSEEN = 255  # while a grid is filled: no row has named this cell yet
_MOST_CELLS = 4_000_000_000

_CHUNK = 2**17  # rows whose cells are numbered at a time: they fit a cache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Index = NDArray[np.integer[Any]]


def outcome_code(word: str) -> int:
    """The code of a verdict word or of a reason; anything else is refused, since guessing a verdict ships agents.

    >>> OUTCOMES[outcome_code("TRUE")], OUTCOMES[outcome_code("timeout")]
    ('pass', 'timeout')
    """
    code = _WORDS.get(word.lower()) if word.isascii() else None
    if code is None:
        raise InputError(
            "a blank outcome" if not word.strip() else quote(word),
            "pass or fail, true or false, 1 or 0, or a reason: " + ", ".join(MISSING),
            "write the verdict, or the reason why there is none",
            column="outcome",
        )
    return code


@dataclass(frozen=True, eq=False)
class Labels:
    """One name per row, held as distinct names and the index of each row's name."""

    names: tuple[str, ...]
    index: Index

    @classmethod
    def of(cls, values: Sequence[str]) -> Labels:
        """Number the distinct values."""
        seen: dict[str, int] = {}
        index = np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, len(values))
        return cls(tuple(seen), index)

    def sorted(self, names: Sequence[str] | None = None) -> Labels:
        """The same labels numbered in natural order, or in the order of ``names``."""
        order = tuple(in_order(self.names) if names is None else names)
        place = {name: i for i, name in enumerate(order)}
        moved = np.fromiter((place[name] for name in self.names), np.min_scalar_type(len(order)), len(self.names))
        return Labels(order, moved[self.index] if len(self.names) else self.index)


@dataclass(frozen=True, eq=False)
class Column:
    """A measured number per cell (a score, a cost), exact: integers over one denominator, with a mask of those present."""

    numerators: NDArray[np.int64] | NDArray[np.object_]
    denominator: int
    present: NDArray[np.bool_]

    def total(self) -> Fraction:
        """The sum over the cells that have a number."""
        # Python's integers cannot overflow; int64 is kept to where a sum cannot either (see _column).
        return Fraction(int(self.numerators[self.present].sum()), self.denominator)

    def largest(self) -> Fraction:
        """The largest number."""
        return Fraction(int(self.numerators[self.present].max()), self.denominator)


@dataclass(frozen=True, eq=False)
class Instances:
    """One candidate's instances, as a reduction sees them.

    ``passed``, ``failed`` and ``planned`` are counts of repetitions per instance, int64, shape (instances,), not to be changed. ``columns``
    hold measured numbers per cell, shape (repetitions, instances).
    """

    candidate: str
    ids: tuple[str, ...]
    passed: Counts
    failed: Counts
    planned: Counts
    groups: tuple[str, ...] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)

    @cached_property
    def complete(self) -> bool:
        """Every planned cell has a verdict, and every instance plans at least one."""
        return bool(len(self.ids) and (self.passed + self.failed == self.planned).all() and self.planned.all())

    @cached_property
    def cells(self) -> int:
        """Planned cells."""
        return int(self.planned.sum())


def from_histogram(candidate: str, histogram: Sequence[int]) -> Instances:
    """The instances that a published histogram counts: entry c is the number of instances with exactly c passed repetitions.

    Every repetition counts as graded, so what the publisher took for a fail is one. The ids match those of no other
    candidate: a histogram does not say which instances passed.
    Raises: InputError for an entry that is no count, for fewer than two entries, or for no instance.

    >>> merge = from_histogram("MERGE", [1, 4, 1])
    >>> merge.passed.tolist(), merge.cells
    ([0, 1, 1, 1, 1, 2], 12)
    """
    times = [count(n) for n in histogram]
    repetitions = len(times) - 1
    if not 0 < sum(times) * repetitions <= _MOST_CELLS:
        raise InputError(
            f"a histogram of {len(times)} entries and {sum(times)} instances",
            "one entry for each of 0 to R passed repetitions, R at least 1, and at least one instance",
            f"correct the histogram of {quote(candidate)}",
        )
    passed = np.repeat(np.arange(repetitions + 1, dtype=np.int64), times)
    ids = tuple(f"{candidate} {n}" for n in range(1, len(passed) + 1))
    return Instances(candidate, ids, passed, repetitions - passed, np.full(len(passed), repetitions, np.int64))


class Coverage(NamedTuple):
    """Observed of planned cells of one candidate, with the reason of each that is missing.

    >>> str(Coverage("A", 12, 11, {"timeout": 1}, {}))
    '11 of 12 cells (1 timeout)'
    """

    candidate: str
    planned: int
    observed: int
    missing: Mapping[str, int]
    counted_as_fail: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """No planned cell lacks a verdict."""
        return self.observed == self.planned

    def __str__(self) -> str:
        notes = [f"{n} {reason}" for reason, n in self.missing.items()]
        notes += [f"{n} {reason} counted as fail by the rule" for reason, n in self.counted_as_fail.items()]
        return f"{self.observed} of {self.planned} cells" + (f" ({', '.join(notes)})" if notes else "")


@dataclass(frozen=True, eq=False)
class Campaign:
    """The planned grid and one outcome code per planned cell.

    ``codes`` is uint8, read-only, shape (repetitions, candidates, instances): repetition first, since a fail-closed
    reduction folds that axis. Names are in natural order, so the order of rows and columns in a file never matters.
    """

    candidates: tuple[str, ...]
    instances: tuple[str, ...]
    repetitions: tuple[str, ...]
    codes: NDArray[np.uint8]
    groups: tuple[str, ...] | None = None
    clusters: tuple[str, ...] | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    details: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    bindings: Mapping[str, str] = field(default_factory=dict)
    declared: bool = False  # the instances come from a declared inventory
    rows: int = 0  # rows read
    notes: tuple[str, ...] = ()  # the account of what was read; no part of the digest

    def __post_init__(self) -> None:
        shape = (len(self.repetitions), len(self.candidates), len(self.instances))
        if self.codes.shape != shape or self.codes.dtype != np.uint8:
            raise InputError(f"codes of shape {self.codes.shape}", f"uint8 of shape {shape}")
        if self.codes.flags.writeable:
            self.codes.flags.writeable = False

    def _position(self, candidate: str) -> int:
        if candidate not in self.candidates:
            raise InputError(
                f"no candidate {quote(candidate)}", "one of " + listing(self.candidates, 13), "name a candidate of this campaign"
            )
        return self.candidates.index(candidate)

    @cached_property
    def tally_by_code(self) -> NDArray[np.unsignedinteger]:
        """Cells per outcome code, candidate and instance: the smallest unsigned type, shape (outcomes, candidates, instances)."""
        counts = np.zeros((len(OUTCOMES), *self.codes.shape[1:]), np.min_scalar_type(len(self.repetitions)))
        if self.codes.size:
            last = int(self.codes.max())
            counts[last] = len(self.repetitions)  # what no other code took
            same = np.empty(self.codes.shape[1:], bool)
            for code in range(int(self.codes.min()), last):
                for layer in self.codes:
                    counts[code] += np.equal(layer, code, out=same).view(np.uint8)
                counts[last] -= counts[code]
        counts.flags.writeable = False
        return counts

    @cached_property
    def _planned(self) -> Counts:
        """Repetitions per instance, one array for the views of all candidates."""
        planned = np.full(len(self.instances), len(self.repetitions), np.int64)
        planned.flags.writeable = False
        return planned

    def of(self, candidate: str, count_as_fail: Sequence[str] = ()) -> Instances:
        """One candidate's instances; the reasons in ``count_as_fail`` count as failed cells, because a rule says so."""
        c = self._position(candidate)
        strange = [reason for reason in count_as_fail if reason not in MISSING]
        if strange:
            raise RuleError(f"count_as_fail {listing(strange)}", "reasons: " + ", ".join(MISSING), "correct them")
        reasons = [CODE[reason] for reason in dict.fromkeys(count_as_fail)]
        tally = self.tally_by_code[:, c]
        passed, failed = tally[PASS].astype(np.int64), tally[FAIL].astype(np.int64)
        for reason in reasons:
            failed += tally[reason]
        passed.flags.writeable = failed.flags.writeable = False

        def column(name: str, whole: Column) -> Column:
            numbers, present = whole.numerators[:, c], whole.present[:, c]
            if name == "score" and reasons:  # the rule gives such a cell the score of a fail
                forced = np.isin(self.codes[:, c], reasons)
                return Column(np.where(forced, 0, numbers), whole.denominator, present | forced)
            return Column(numbers, whole.denominator, present)

        return Instances(
            candidate,
            self.instances,
            passed,
            failed,
            self._planned,
            self.groups,
            {name: column(name, whole) for name, whole in self.columns.items()},
        )

    def coverage(self, candidate: str, count_as_fail: Sequence[str] = ()) -> Coverage:
        """Observed of planned cells, the missing by reason."""
        c = self._position(candidate)
        totals = self.tally_by_code[:, c].sum(axis=1, dtype=np.int64)
        by_reason = {word: int(totals[CODE[word]]) for word in MISSING if totals[CODE[word]]}
        missing = {word: n for word, n in by_reason.items() if word not in count_as_fail}
        planned = len(self.repetitions) * len(self.instances)
        counted = {word: n for word, n in by_reason.items() if word in count_as_fail}
        return Coverage(candidate, planned, planned - sum(missing.values()), missing, counted)

    def missing(self, candidate: str, count_as_fail: Sequence[str] = ()) -> list[tuple[str, str, str]]:
        """(instance, repetition, reason) of every planned cell that has no verdict."""
        layer = self.codes[:, self._position(candidate)]
        keep = [CODE[word] for word in MISSING if word not in count_as_fail]
        return [(self.instances[i], self.repetitions[r], OUTCOMES[layer[r, i]]) for i, r in np.argwhere(np.isin(layer, keep).T).tolist()]

    def outcome(self, candidate: str, instance: str, repetition: str) -> str:
        """The outcome word of one cell."""
        if instance not in self.instances or repetition not in self.repetitions:
            raise InputError(f"no cell of instance {quote(instance)}, repetition {quote(repetition)}", "a planned cell", "correct the ids")
        where = self.repetitions.index(repetition), self._position(candidate), self.instances.index(instance)
        return OUTCOMES[self.codes[where]]

    def require(self, repetitions: Sequence[str]) -> Campaign:
        """The same observations on the repetitions that a rule requires: others are refused, absent ones show as absent."""
        extra = [name for name in self.repetitions if name not in repetitions]
        if extra:
            raise RuleError(
                f"{sum(np.count_nonzero(self.codes[self.repetitions.index(name)]) for name in extra)} cells of repetition {listing(extra)}",
                "only the repetitions that the rule requires: " + listing(repetitions, 12),
                "remove the extra repetitions, or change the rule before looking at the results",
            )
        order = tuple(in_order(repetitions))
        place = [order.index(name) for name in self.repetitions]

        def spread(cube: NDArray[np.generic], fill: object) -> NDArray[np.generic]:
            wide = np.full((len(order), *cube.shape[1:]), fill, cube.dtype)
            wide[place] = cube
            return wide

        columns = {
            name: Column(spread(c.numerators, 0), c.denominator, spread(c.present, False))  # type: ignore[arg-type]
            for name, c in self.columns.items()
        }
        codes = spread(self.codes, CODE["absent"])
        return replace(self, repetitions=order, codes=codes, columns=columns)  # type: ignore[arg-type]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical content: sorted names, groups, clusters, bindings, outcome codes and measured numbers."""
        import hashlib
        import json

        head = {
            "format": "evalkit campaign 1",
            "candidates": self.candidates,
            "instances": self.instances,
            "repetitions": self.repetitions,
            "groups": self.groups,
            "clusters": self.clusters,
            "bindings": dict(sorted(self.bindings.items())),
            "declared": self.declared,
            "columns": sorted(self.columns),
        }
        sha = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
        sha.update(b"\0")
        sha.update(np.ascontiguousarray(self.codes).data)
        for name in sorted(self.columns):
            column = self.columns[name]
            numbers = zip(column.numerators.ravel().tolist(), column.present.ravel().tolist(), strict=True)
            sha.update("\n".join(str(n) if there else "" for n, there in numbers).encode())
            sha.update(f"\0{column.denominator}\0".encode())
        return sha.hexdigest()


class Inventory(NamedTuple):
    """The declared instances, each once, with their group and cluster where the campaign has them."""

    instances: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    clusters: tuple[str, ...] | None = None


def assemble(
    candidates: Labels,
    instances: Labels,
    repetitions: Labels,
    outcomes: NDArray[np.uint8],
    *,
    groups: Labels | None = None,
    clusters: Labels | None = None,
    columns: Mapping[str, Sequence[Fraction | None]] | None = None,
    details: Sequence[str] | None = None,
    bindings: Mapping[str, str] | None = None,
    inventory: Inventory | None = None,
    row_numbers: Sequence[int] | None = None,
) -> Campaign:
    """Build a campaign from one entry per row; refuse what would count twice or compare unlike things.

    ``outcomes`` holds codes (see ``outcome_code``). Refused, with the rows: duplicate cells, instances outside the
    inventory, an instance whose group or cluster differs between rows, equal counts of different repetition ids.
    """
    n = len(outcomes)

    def rows(index: Sequence[int] | Index) -> list[int]:
        return [int(row_numbers[int(i)]) if row_numbers is not None else int(i) + 2 for i in index]

    if not n:
        raise InputError("no rows", "one row per cell", "check that the run wrote its results")
    if inventory is not None:
        _refuse_undeclared(inventory, instances, rows)
    _refuse_half({"candidate": candidates, "instance": instances, "repetition": repetitions, "group": groups, "cluster": clusters})
    candidates, repetitions = candidates.sorted(), repetitions.sorted()
    instances = instances.sorted(in_order(inventory.instances) if inventory else None)
    c_count, i_count, r_count = len(candidates.names), len(instances.names), len(repetitions.names)

    most = min(max(50_000_000, 50 * n), _MOST_CELLS)
    chunks = [slice(start, start + _CHUNK) for start in range(0, n, _CHUNK)]
    runs = np.zeros((c_count, r_count), bool) if c_count * r_count <= most else None
    if runs is not None:
        for part in chunks:
            runs[candidates.index[part], repetitions.index[part]] = True
        _refuse_unlike_repetitions(candidates, repetitions, instances, runs, rows)
    cells = r_count * c_count * i_count
    if runs is None or cells > most:
        raise InputError(
            f"{n} rows that spread over {r_count} repetitions x {c_count} candidates x {i_count} instances",
            "repetition ids that the instances share",
            'number the repetitions of each instance: repetition = "order"',
            column="repetition",
        )

    def cells_of(part: slice) -> NDArray[np.int64]:
        plane = repetitions.index[part].astype(np.int64) * c_count + candidates.index[part]
        return plane * i_count + instances.index[part]

    codes = np.full(cells, _UNSEEN, np.uint8)
    for part in chunks:
        codes[cells_of(part)] = outcomes[part]
    unseen = codes == _UNSEEN
    if cells - int(np.count_nonzero(unseen)) != n:
        raise _double(candidates, instances, repetitions, cells_of(slice(None)), rows)
    codes[unseen] = CODE["absent"]

    def per_instance(labels: Labels | None, column: str, declared: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """One label per instance, the same in every row and in the inventory."""
        if labels is None:
            return _reorder(inventory, declared, instances.names)
        first = np.full(i_count, n, np.int64)
        first[instances.index[::-1]] = np.arange(n - 1, -1, -1)  # the first row of each: it is written last
        unlike = np.flatnonzero(labels.index != labels.index[first[instances.index]])
        if len(unlike):
            here = int(unlike[0])
            there = int(first[instances.index[here]])
            raise InputError(
                f"instance {quote(instances.names[instances.index[here]])} in {column} {quote(labels.names[labels.index[there]])} "
                f"and in {column} {quote(labels.names[labels.index[here]])}",
                f"one {column} per instance, the same for every candidate",
                "restore the original label; a relabelled instance makes two candidates incomparable",
                row=rows([there, here]),
                column=column,
            )
        absent = first == n
        if declared is None and inventory is not None and absent.any():
            gap = listing([instances.names[i] for i in np.flatnonzero(absent)])
            raise InputError(
                f"no {column} for {gap}",
                f"a {column} for every declared instance",
                f"add a {column} column to the inventory",
                column=column,
            )
        found = tuple(labels.names[labels.index[row]] if row < n else "" for row in first.tolist())
        if declared is not None:
            wanted = _reorder(inventory, declared, instances.names) or ()
            odd = [i for i, (have, want) in enumerate(zip(found, wanted, strict=True)) if have != want and not absent[i]]
            if odd:
                raise InputError(
                    f"{column} {quote(found[odd[0]])} for instance {quote(instances.names[odd[0]])}",
                    f"{quote(wanted[odd[0]])}, as the inventory declares",
                    "restore the original label",
                    row=rows([int(first[odd[0]])]),
                    column=column,
                )
            return wanted
        return found

    shape = (r_count, c_count, i_count)
    kept = {
        (candidates.names[candidates.index[k]], instances.names[instances.index[k]], repetitions.names[repetitions.index[k]]): text.encode(
            "utf-8", "backslashreplace"
        ).decode()
        for k, text in enumerate(details or ())
        if text
    }
    return Campaign(
        candidates.names,
        instances.names,
        repetitions.names,
        codes.reshape(shape),
        per_instance(groups, "group", inventory.groups if inventory else None),
        per_instance(clusters, "cluster", inventory.clusters if inventory else None),
        MappingProxyType({name: _column(values, cells_of(slice(None)), shape) for name, values in (columns or {}).items()}),
        MappingProxyType(kept),
        MappingProxyType(dict(bindings or {})),
        inventory is not None,
        n,
    )


def _refuse_half(columns: Mapping[str, Labels | None]) -> None:
    """JSON can escape half a character, which no file can hold."""
    for column, labels in columns.items():
        names = labels.names if labels is not None else ()
        try:
            "".join(names).encode()
        except UnicodeEncodeError as error:
            name = next(name for name in names if error.object[error.start] in name)
            raise InputError(
                f"half a character in {quote(name)}", "whole characters", "write the character itself", column=column
            ) from None


def _double(
    candidates: Labels, instances: Labels, repetitions: Labels, cell: NDArray[np.int64], rows: Callable[[Index], list[int]]
) -> InputError:
    """Name the first cell that has two rows."""
    order = np.argsort(cell, kind="stable")
    same = np.flatnonzero(np.diff(cell[order]) == 0)
    first = order[same[0]]
    twice = np.flatnonzero(cell == cell[first])
    return InputError(
        f"{len(twice)} rows for the cell ({quote(candidates.names[candidates.index[first]])}, "
        f"{quote(instances.names[instances.index[first]])}, repetition {quote(repetitions.names[repetitions.index[first]])})"
        + (f", and {len(same) - len(twice) + 1} more duplicate rows" if len(same) >= len(twice) else ""),
        "one row per cell",
        "remove the duplicates; the kit does not choose between two results",
        row=rows(twice),
    )


def _reorder(inventory: Inventory | None, values: tuple[str, ...] | None, names: tuple[str, ...]) -> tuple[str, ...] | None:
    if inventory is None or values is None:
        return None
    given = dict(zip(inventory.instances, values, strict=True))
    return tuple(given[name] for name in names)


def _refuse_undeclared(inventory: Inventory, instances: Labels, rows: Callable[[Index], list[int]]) -> None:
    known = set(inventory.instances)
    strange = np.array([name not in known for name in instances.names])
    if strange.any():
        at = np.flatnonzero(strange[instances.index])
        raise InputError(
            "instances outside the declared inventory: " + listing(in_order(instances.names[i] for i in np.flatnonzero(strange))),
            "only declared instances: " + listing(in_order(known)),
            "correct the ids, or declare them in the inventory",
            row=rows(at),
            column="instance",
        )


def _refuse_unlike_repetitions(
    candidates: Labels, repetitions: Labels, instances: Labels, runs: NDArray[np.bool_], rows: Callable[[Index], list[int]]
) -> None:
    """Repetitions match by the text of their id; ids that cannot match would make every candidate look incomplete."""
    todo = 'number the repetitions of each instance: repetition = "order"'
    names = candidates.names
    by_count: dict[int, int] = {}
    for c, ran in enumerate(runs):
        other = by_count.setdefault(int(ran.sum()), c)
        if not np.array_equal(ran, runs[other]):
            here, there = (listing([repetitions.names[r] for r in np.flatnonzero(row)]) for row in (ran, runs[other]))
            unlike = np.isin(repetitions.index, np.flatnonzero(ran != runs[other])) & np.isin(candidates.index, [c, other])
            raise InputError(
                f"candidates {quote(names[other])} and {quote(names[c])} with {int(ran.sum())} repetitions each, "
                f"but different ids: {there} against {here}",
                "the same repetition ids for every candidate",
                todo,
                row=rows(np.flatnonzero(unlike)),
                column="repetition",
            )
    # with more rows than candidates x repetitions, two instances share one; a streamed frame gives two rows for each repetition
    few = len(repetitions.index) <= max(runs.size, 2 * len(repetitions.names))
    if few and min(len(repetitions.names), len(instances.names)) > 1:
        low = np.full(len(repetitions.names), len(instances.names), np.int64)
        high = np.zeros_like(low)
        np.minimum.at(low, repetitions.index, instances.index)
        np.maximum.at(high, repetitions.index, instances.index)
        if np.array_equal(low, high):
            raise InputError(
                f"{len(repetitions.names)} repetition ids, none shared by two instances",
                "repetition ids that the instances share, such as 0, 1, 2",
                todo,
                column="repetition",
            )


def _column(values: Sequence[Fraction | None], cell: Index, shape: tuple[int, int, int]) -> Column:
    """Integers over the least common denominator; int64 only where no sum of them can overflow."""
    denominator = math.lcm(*{value.denominator for value in values if value is not None})
    scaled = [0 if value is None else value.numerator * (denominator // value.denominator) for value in values]
    small = max(map(abs, scaled)) * len(scaled) <= np.iinfo(np.int64).max
    numerators: NDArray[np.int64] | NDArray[np.object_] = (
        np.zeros(math.prod(shape), np.int64) if small else np.zeros(math.prod(shape), object)
    )
    numerators[cell] = scaled
    present = np.zeros(math.prod(shape), bool)
    present[cell] = [value is not None for value in values]
    for array in (numerators, present):
        array.flags.writeable = False
    return Column(numerators.reshape(shape), denominator, present.reshape(shape))


def require_complete(instances: Instances) -> None:
    """Refuse a number that a missing cell would change."""
    if not instances.complete:
        short = np.flatnonzero(instances.passed + instances.failed != instances.planned)
        observed = int((instances.passed + instances.failed).sum())
        which = [instances.ids[i] for i in short] or [instances.ids[i] for i in np.flatnonzero(instances.planned <= 0)]
        raise CoverageError(
            f"{observed} of {instances.cells} cells of {quote(instances.candidate)}" + (f" (short: {listing(which)})" if which else ""),
            "every planned cell graded, at least one for each instance",
            "run the missing cells; a missing cell is neither a pass nor a fail",
        )
