"""Dataframes: a campaign or tallies from pandas, Polars, PyArrow, DuckDB, PySpark or Dask, counted where the rows live.

One group-by, written once with Narwhals. A campaign comes back as one row per candidate and instance, with a word of bits
per outcome, one bit per repetition; its cells are rebuilt from the bits exactly. A word whose one-bits differ from the
number of rows means a double cell, which a second group-by then names.
"""

from __future__ import annotations

import codecs
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from .._exact import in_order
from ..campaign import BINDINGS, FAIL, PASS, Campaign, Column, Inventory, Labels, _refuse_unlike_repetitions, assemble
from ..errors import EvalkitError, InputError, listing, quote
from ..reweighting import Tally
from ._json import load
from .table import (
    ORDER,
    TALLY,
    Columns,
    Requests,
    Table,
    _parse,
    _records,
    counts_of,
    from_rows,
    name_text,
    no_pass,
    plain_value,
    require,
    two_bindings,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE = 100_000
_PIECE = 2**24  # bytes of a CSV that are looked over at a time
_BITS = 48  # repetitions in a word: a sum of 2**15 doubles still fits 63 bits
_MOST_KINDS = 5_000  # distinct pairs of repetition and outcome that the group-by takes
_MOST_WORDS = 64
_MOST_ROWS = 50_000_000  # that are fetched one by one, where the group-by cannot hold what they say
_MOST_CELLS = 4_000_000_000
_MOST_GROUPS = 10_000
_PLANNED = ("period", "group", "request")
_HINT = "request=id; outcome=verdict"
_VISIBLE = re.compile("[!-~]*")
_IDS = (nw.String, nw.Categorical, nw.Enum, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
BREAKS = (pl.exceptions.PolarsError, nw.exceptions.NarwhalsError)
_OUTCOMES = (*_IDS, nw.Boolean, nw.Float64)


def campaign_of(frame: Any, *, columns: Columns | str | None = None, inventory: Inventory | None = None) -> Campaign:
    """A campaign from a dataframe of a backend that Narwhals knows, eager or lazy, or from a DuckDB relation.

    ``columns`` declares which column says what, as ``Columns`` or as its text; without it the frame is the canonical table.
    The same rows give the same campaign, and the same digest, in every engine and from CSV.
    Raises: InputError for anything that could be counted wrongly, with the row where rows have an order.
    """
    lazy, ordered = _lazy(frame)
    schema = lazy.collect_schema()
    said = Columns.parse(columns) if isinstance(columns, str) else columns
    said = said or Columns.canonical(schema.names())
    said.require(schema.names())
    bindings = [name for name in BINDINGS if name in schema]
    if said.repetition == ORDER and not ordered:
        raise InputError(
            "rows without an order (a distributed or a database frame)", "a repetition column", "number the repetitions in the engine"
        )
    try:
        numbered = _numbered(lazy, schema, said, bindings, inventory)
        return numbered or _counted(lazy, schema, said, bindings, inventory) or _fetched(lazy, said, bindings, inventory)
    except EvalkitError as error:
        if ordered and not error.rows:
            _fetched(lazy, said, bindings, inventory)  # refuses the same, with the rows
        error.rows = error.rows if ordered else ()
        raise


def _lazy(frame: Any) -> tuple[nw.LazyFrame[Any], bool]:
    """The frame as a lazy one, and whether its rows have an order."""
    try:
        known = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"a {type(frame).__name__}", "a dataframe of pandas, Polars, PyArrow, DuckDB, PySpark or Dask", "convert it to one of them"
        ) from None
    if len(set(known.collect_schema().names())) != len(known.collect_schema().names()):
        raise InputError("a column more than once", "each column once", "rename or remove one of them")
    return known.lazy(), isinstance(known, nw.DataFrame) or known.implementation.is_polars()


def _numbered(
    lazy: nw.LazyFrame[Any], schema: nw.Schema, said: Columns, bindings: Sequence[str], inventory: Inventory | None
) -> Campaign | None:
    """The campaign from rows in Polars, whose names are numbered while they stream by; None for rows that need a closer look."""
    labels = [role for role in ("group", "cluster") if getattr(said, role)]
    ids = {role: getattr(said, role) for role in ("candidate", "instance", "repetition", *labels)} | {name: name for name in bindings}
    if (
        not lazy.implementation.is_polars()
        or said.repetition == ORDER
        or (said.wide or said.score or said.measured or said.condition)
        or any(not isinstance(schema[name], _IDS) for name in ids.values() if not name.startswith("= "))
        or not isinstance(schema[said.outcome], (nw.String, nw.Categorical, nw.Enum, nw.Boolean))
    ):
        return None
    rows = lazy.select(*(_id(column).alias(role) for role, column in ids.items()), outcome=nw.col(said.outcome).cast(nw.String))
    numbers = {
        role: pl.Categorical(pl.Categories.random(role, pl.UInt8 if role == "outcome" else pl.UInt32 if role == "instance" else pl.UInt16))
        for role in (*ids, "outcome")
    }
    try:
        table = nw.to_native(rows).select(pl.col(role).cast(numbers[role]) for role in numbers).collect(engine="streaming")
    except pl.exceptions.ComputeError:  # more names than numbers, or rows that another way will refuse
        return None
    if not len(table) or sum(table.null_count().row(0)):
        return None
    found = {role: _numbered_labels(table[role], ids.get(role, "")) for role in numbers}
    if any(len(set(labels.names)) < len(labels.names) for labels in found.values()):  # a number that no row has
        return None
    try:
        read = np.array([said.read(word)[0] for word in found["outcome"].names], np.uint8)
    except InputError:
        return None
    if (said.passes and PASS not in read) or any(len(found[name].names) > 1 for name in bindings):
        return None
    campaign = assemble(
        found["candidate"], found["instance"], found["repetition"], read[found["outcome"].index],
        groups=found.get("group"), clusters=found.get("cluster"), bindings={name: found[name].names[0] for name in bindings},
        inventory=inventory, row_numbers=range(1, len(table) + 1),
    )  # fmt: skip
    if said.detail:
        ids["detail"] = said.detail
        campaign = _with_details(campaign, lazy.select(*(_id(column).alias(role) for role, column in ids.items())))
    return campaign


def _numbered_labels(column: pl.Series, role: str) -> Labels:
    """The names of a categorical column in the order of their numbers, and each row's number."""
    numbers = column.to_physical().to_numpy()
    row_of, seen = np.zeros(int(numbers.max()) + 1, np.int64), np.zeros(int(numbers.max()) + 1, bool)
    for start in range(0, len(numbers), _SAMPLE):
        part = numbers[start : start + _SAMPLE]
        row_of[part], seen[part] = np.arange(start, start + len(part)), True  # some row with that number
        if seen.all():
            break
    names = column.gather(row_of).cast(pl.String).to_list()
    if role and not (all(names) and _VISIBLE.fullmatch("".join(names))):
        names = [name_text(name, role) for name in names]
    return Labels(tuple(names), numbers)


def _with_details(campaign: Campaign, rows: nw.LazyFrame[Any]) -> Campaign:
    """With the text of the cells that have one."""
    texts = _fetch(rows.filter(nw.col("detail") != "").select("candidate", "instance", "repetition", "detail")).rows()
    return replace(campaign, details=MappingProxyType({(c, i, r): text for c, i, r, text in texts}))


def _counted(
    lazy: nw.LazyFrame[Any], schema: nw.Schema, said: Columns, bindings: Sequence[str], inventory: Inventory | None
) -> Campaign | None:
    """The campaign by group-by; None where words of bits cannot hold what the rows say."""
    labels = {role: getattr(said, role) for role in ("group", "cluster") if getattr(said, role)}
    wide = said.wide or (said.outcome,)
    ids = [said.candidate, said.instance, *labels.values(), *bindings, *([] if said.wide else [said.repetition])]
    if (
        said.repetition == ORDER
        or said.score
        or said.measured
        or any(not isinstance(schema[name], _IDS) for name in ids if not name.startswith("= "))
        or any(not isinstance(schema[name], _OUTCOMES) or schema[name] != schema[wide[0]] for name in wide)
    ):
        return None
    text = isinstance(schema[wide[0]], (nw.Categorical, nw.Enum))

    def rows(repetition: nw.Expr, outcome: str) -> nw.LazyFrame[Any]:
        kept = {"candidate": said.candidate, "instance": said.instance, **labels, "detail": said.detail}
        return lazy.select(
            *(_id(column).alias(role) for role, column in kept.items() if column),
            *(_id(column).alias(column) for column in bindings),
            repetition.alias("repetition"),
            (nw.col(outcome).cast(nw.String) if text else nw.col(outcome)).alias("outcome"),
        )

    # a union, since the engines' own unpivot may drop nulls
    long = nw.concat([rows(nw.lit(name), name) for name in said.wide]) if said.wide else rows(_id(said.repetition), said.outcome)
    keys = ["candidate", "instance", *labels]
    # The first rows mostly show every kind of row; where they do not, the bits say so, and all rows are asked.
    for sample in ([] if bindings else [long.head(_SAMPLE)]) + [long]:
        kinds = _kinds(sample, said, bindings, whole=sample is long)
        if kinds is None:
            continue
        said_by = list(kinds.read.values())
        words = {
            f"word {w} {first}": _word(said_by[first : first + kinds.fields(half)], half, isinstance(schema[wide[0]], nw.Float64))
            for w, half in enumerate(kinds.halves)
            for first in range(0, len(said_by), kinds.fields(half))
        }
        counted = _fetch(long.select(*keys, **words).group_by(*keys).agg(*(nw.col(word).sum() for word in words), nw.len().alias("rows")))
        # a sum beyond 64 bits can only come of doubles, which a word of 0 reports as well
        pairs = _Pairs(counted.with_columns(pl.col(*words, "rows").cast(pl.Int64, strict=False).fill_null(0)), kinds)
        if pairs.exact:
            campaign = pairs.campaign(said, labels, inventory)
            return _with_details(campaign, long) if said.detail else campaign
        if sample is long:
            raise _double(long)
    return None


@dataclass(frozen=True)
class _Kinds:
    """What rows say besides their candidate and instance."""

    repetitions: tuple[str, ...]
    read: Mapping[tuple[int, Fraction | None], Sequence[object]]  # outcome code and number -> the values that say it
    bindings: Mapping[str, str]

    @property
    def halves(self) -> list[tuple[str, ...]]:
        """The repetitions, a word at a time."""
        return [self.repetitions[start : start + _BITS] for start in range(0, len(self.repetitions), _BITS)]

    @staticmethod
    def fields(half: Sequence[str]) -> int:
        """How many kinds of outcome share a word, a field of bits each."""
        return _BITS // len(half)


def _kinds(rows: nw.LazyFrame[Any], said: Columns, bindings: Sequence[str], *, whole: bool) -> _Kinds | None:
    """The distinct repetitions and outcomes; None where they are too many for words, or where a sample does not tell."""
    seen = _fetch(rows.select("repetition", "outcome", *bindings).unique().head(_MOST_KINDS + 1))
    if not len(seen):
        raise InputError("no rows", "one row per cell", "check that the run wrote its results")
    if len(seen) > _MOST_KINDS:
        return None
    names = in_order({name_text(value, said.repetition) for value in seen["repetition"].unique()})
    bound = {}
    for column in bindings:
        values = in_order({name_text(value, column) for value in seen[column].unique()})
        if len(values) > 1:
            raise two_bindings(column, values)
        bound[column] = values[0]
    read: dict[tuple[int, Fraction | None], list[object]] = {}
    for value in sorted(seen["outcome"].unique(), key=repr):
        try:
            read.setdefault(said.read(value), []).append(value)
        except EvalkitError as error:
            error.column = said.wide[0] if said.wide else said.outcome
            raise
    if said.passes and not any(code == PASS for code, _ in read):
        if whole:
            raise no_pass(said, [str(value) for values in read.values() for value in values])
        return None
    kinds = _Kinds(tuple(names), read, bound)
    return kinds if len(read) * len(kinds.halves) <= _MOST_WORDS else None


def _id(column: str) -> nw.Expr:
    return nw.lit(column[2:].strip()) if column.startswith("= ") else nw.col(column).cast(nw.String)


def _word(kinds: Sequence[Sequence[object]], names: Sequence[str], float_: bool) -> nw.Expr:
    """The bit of a row's repetition in the field of its kind of outcome, 0 for any other row."""
    bit = field = nw.lit(0, nw.Int64)
    for place, name in reversed(list(enumerate(names))):
        bit = nw.when(nw.col("repetition") == name).then(nw.lit(1 << place, nw.Int64)).otherwise(bit)
    for kind, values in reversed(list(enumerate(kinds))):
        field = nw.when(_among(values, float_)).then(nw.lit(1 << kind * len(names), nw.Int64)).otherwise(field)
    return bit * field


def _among(values: Sequence[object], float_: bool) -> nw.Expr:
    """Whether the outcome is one of the values, null and NaN among them."""
    outcome = nw.col("outcome")
    plain = [value for value in values if value is not None and value == value]
    there = outcome.is_in(plain) if plain else nw.lit(False)
    if None in values:
        there = there.fill_null(False) | outcome.is_null()
    if float_ and any(value is not None and value != value for value in values):
        there = there | outcome.is_nan()
    return there


def _fetch(lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
    """The rows of a small result, as Polars."""
    native: pl.DataFrame
    if lazy.implementation.is_polars():
        native = nw.to_native(lazy).collect(engine="streaming")
    else:
        native = lazy.collect(backend="polars").to_native()
    return native


@dataclass(frozen=True)
class _Pairs:
    """One row per candidate and instance, as the engine counted them."""

    table: pl.DataFrame
    kinds: _Kinds

    def bits(self, half: int, kind: int) -> NDArray[np.int64]:
        """One bit per repetition of that kind of outcome."""
        names = self.kinds.halves[half]
        place = kind % self.kinds.fields(names)
        return (self.table[f"word {half} {kind - place}"].to_numpy() >> place * len(names)) & ((1 << len(names)) - 1)

    @property
    def exact(self) -> bool:
        """One bit for every row. Bits of doubles carry or coincide, and an unknown kind of row has no bit: then fewer are left."""
        ones, distinct = np.zeros(len(self.table), np.int64), np.zeros(len(self.table), np.int64)
        for word in (name for name in self.table.columns if name.startswith("word ")):
            ones += np.bitwise_count(self.table[word].to_numpy())
        for half in range(len(self.kinds.halves)):
            distinct += np.bitwise_count(np.bitwise_or.reduce([self.bits(half, kind) for kind in range(len(self.kinds.read))]))
        rows = self.table["rows"].to_numpy()
        return bool((ones == rows).all() and (distinct == rows).all())

    def campaign(self, said: Columns, labels: Mapping[str, str], inventory: Inventory | None) -> Campaign:
        """The cells from the bits, after the checks that every campaign passes."""
        candidates, instances = _labels(self.table["candidate"], said.candidate), _labels(self.table["instance"], said.instance)
        pair = candidates.index * len(instances.names) + instances.index
        if labels and len(np.unique(pair)) != len(pair):
            raise _two_labels(self.table, labels)
        given = {role: _labels(self.table[role], column) for role, column in labels.items()}
        try:
            grid = assemble(
                candidates, instances, Labels(("",), np.zeros(len(pair), np.int64)), np.full(len(pair), PASS, np.uint8),
                groups=given.get("group"), clusters=given.get("cluster"), bindings=self.kinds.bindings, inventory=inventory,
            )  # fmt: skip
        except EvalkitError as error:
            error.rows = ()
            raise
        candidates, instances = candidates.sorted(grid.candidates), instances.sorted(grid.instances)
        shape = (len(self.kinds.repetitions), len(grid.candidates), len(grid.instances))
        n = int(self.table["rows"].sum())
        if math.prod(shape) > min(max(50_000_000, 50 * n), _MOST_CELLS):
            raise InputError(
                f"{n} rows that spread over {shape[0]} repetitions x {shape[1]} candidates x {shape[2]} instances",
                "repetition ids that the instances share",
                "number the repetitions of each instance",
                column="repetition",
            )
        codes = np.zeros((shape[0], shape[1] * shape[2]), np.uint8)  # 0 is absent
        place = candidates.index.astype(np.int64) * shape[2] + instances.index
        runs = np.zeros(shape[:2][::-1], bool)
        low, high = np.empty(shape[0], np.int64), np.empty(shape[0], np.int64)
        numbers = [number for _, number in self.kinds.read if number is not None]
        score, present = self._scores(numbers, codes.shape, n)
        for r in range(shape[0]):
            outcomes, seen = np.zeros(len(place), np.uint8), np.zeros(len(place), bool)
            for kind, (code, number) in enumerate(self.kinds.read):
                there = (self.bits(r // _BITS, kind) >> (r % _BITS)) & 1 == 1
                outcomes[there] = code
                seen |= there
                if number is not None:
                    score.numerators[r, place[there]] = int(number * score.denominator)
                    present[r, place[there]] = True
            at, who, what = (values if seen.all() else values[seen] for values in (place, candidates.index, instances.index))
            codes[r, at] = outcomes if seen.all() else outcomes[seen]
            runs[who, r] = True
            low[r], high[r] = what.min(), what.max()
        ends = Labels(self.kinds.repetitions, np.repeat(np.arange(shape[0]), 2)), Labels(instances.names, np.stack([low, high], 1).ravel())
        somebody = Labels(candidates.names, np.zeros(len(ends[0].index), np.int64))
        _refuse_unlike_repetitions(somebody, *ends, runs, lambda _: [])
        columns = {"score": Column(score.numerators.reshape(shape), score.denominator, present.reshape(shape))} if numbers else {}
        return replace(grid, repetitions=self.kinds.repetitions, codes=codes.reshape(shape), rows=n, columns=MappingProxyType(columns))

    def _scores(self, numbers: Sequence[Fraction], shape: tuple[int, int], rows: int) -> tuple[Column, NDArray[np.bool_]]:
        denominator = math.lcm(*(number.denominator for number in numbers))
        small = max((abs(int(number * denominator)) for number in numbers), default=0) * max(1, rows) < 2**62
        shape = shape if numbers else (0, 0)
        present = np.zeros(shape, bool)
        return Column(np.zeros(shape, np.int64 if small else object), denominator, present), present


def _labels(values: pl.Series, column: str) -> Labels:
    """Distinct names, checked, and the index of each row's."""
    distinct = values.unique(maintain_order=True)
    index = values.to_frame("name").join(
        distinct.to_frame("name").with_row_index("index"), on="name", how="left", nulls_equal=True, maintain_order="left"
    )["index"]  # fmt: skip
    names = distinct.to_list()
    if any(not name or name != name.strip() for name in names):
        names = [name_text(name, column) for name in names]
    return Labels(tuple(names), index.to_numpy().astype(np.int64))


def _two_labels(table: pl.DataFrame, labels: Mapping[str, str]) -> InputError:
    for role in labels:
        per = table.group_by("instance").agg(pl.col(role).unique().sort()).filter(pl.col(role).list.len() > 1).sort("instance")
        if len(per):
            name, (one, other, *_) = per.row(0)
            return InputError(
                f"instance {quote(name)} in {role} {quote(one)} and in {role} {quote(other)}",
                f"one {role} per instance, the same for every candidate",
                "restore the original label; a relabelled instance makes two candidates incomparable",
                column=role,
            )
    return InputError("a candidate and instance twice", "one row each")  # pragma: no cover


def _double(long: nw.LazyFrame[Any]) -> InputError:
    """Name a double cell by an exact group-by over the cells."""
    keys = ["candidate", "instance", "repetition"]
    doubles = _fetch(long.group_by(*keys).agg(nw.len().alias("rows")).filter(nw.col("rows") > 1).sort(*keys).head(1000))
    if not len(doubles):
        raise InputError("rows that change while they are counted", "rows that stand still", "count a snapshot")
    candidate, instance, repetition, rows = doubles.row(0)
    more = f", and {len(doubles) - 1}{' or more' if len(doubles) == 1000 else ''} more cells with doubles" if len(doubles) > 1 else ""
    return InputError(
        f"{rows} rows for the cell ({quote(candidate)}, {quote(instance)}, repetition {quote(repetition)}){more}",
        "one row per cell",
        "remove the duplicates; the kit does not choose between two results",
    )


def _fetched(lazy: nw.LazyFrame[Any], said: Columns, bindings: Sequence[str], inventory: Inventory | None) -> Campaign:
    """The campaign from the rows themselves: exact numbers per cell, ids of mixed kinds, rows numbered in order."""
    needed = list(dict.fromkeys([*said.roles.values(), *bindings]))
    n = int(_fetch(lazy.select(nw.len().alias("n")))["n"][0])
    if n > _MOST_ROWS:
        raise InputError(
            f"{n} rows with numbers or ids that the engine cannot count exactly",
            f"at most {_MOST_ROWS} such rows",
            "leave out measured columns, or cast ids and outcomes to text, truth values or whole numbers in the engine",
        )
    eager = lazy.select(*needed).collect()
    columns = {}
    for name in needed:
        series = eager[name]
        values = list(series.to_numpy()) if series.dtype == nw.Float32 else series.to_list()
        columns[name] = [None if null else value for value, null in zip(values, series.is_null().to_list(), strict=True)]
    return from_rows(columns, said, inventory=inventory)


def tally(
    frame: Any, *, columns: Requests | str | None = None, inventory: Any = None, bindings: Mapping[str, str] | None = None
) -> dict[str, Tally]:
    """Tallies by period from a dataframe of production rows, one per request, or of ready-made counts.

    With an ``inventory``, a frame of the same engine with request, period and group, its requests are the requested ones,
    and a row needs a request and an outcome only. ``bindings`` are the values of grouping_rule, grader_version and case_set.
    Raises: InputError for a request that is double, in two groups or outside the inventory, for a row without a group,
    and for more than 10,000 groups, before anything is fetched.
    """
    lazy, _ = _lazy(frame)
    header = lazy.collect_schema().names()
    said = Requests.parse(columns) if isinstance(columns, str) else columns
    said = said or Requests.canonical(header)
    bound = dict(bindings or {})
    if set(bound) - set(BINDINGS):
        raise InputError(f"bindings {listing(sorted(set(bound) - set(BINDINGS)))}", "only " + ", ".join(BINDINGS), "correct them")
    notes: list[str] = []
    if inventory is None:
        said.require(header)
        rows = _settled(lazy, said, {"period": said.period, "group": said.group, "request": said.request, "cluster": said.cluster})
    else:
        planned = {name: name for name in (*_PLANNED, "cluster") if name in _PLANNED or said.cluster}
        rows = _settled(_planned(lazy, _lazy(inventory)[0], said), replace(said, outcome="outcome"), planned)
    for name in [name for name in BINDINGS if name in header]:
        values = in_order({name_text(value, name) for value in _fetch(lazy.select(_id(name).alias(name)).unique().head(2))[name]})
        if len(values) > 1 or bound.get(name, values[0]) != values[0]:
            raise two_bindings(name, [*values, bound.get(name, "")])
        bound[name] = values[0]
    groups = _fetch(rows.select("period", "group").unique().head(_MOST_GROUPS + 1))
    if not len(groups):
        raise InputError("no rows", "one row per request", "check the table")
    if len(groups) > _MOST_GROUPS:
        raise InputError(f"more than {_MOST_GROUPS} groups", "the groups of a grouping rule", f"is {quote(said.group)} the right column?")
    for name in ("period", "group"):
        for value in groups[name].unique():
            try:
                name_text(value, name)
            except InputError as error:
                same = nw.col(name).is_null() if value is None else nw.col(name) == value
                n = _fetch(rows.filter(same).select(nw.len().alias("n")))["n"][0]
                raise InputError(f"{n} rows with {error.found}", error.expected, "name it in the engine; rows are never dropped",
                                 column=getattr(said, name)) from None  # fmt: skip
    if said.passed:
        table = _fetch(rows.select("period", "group", *TALLY[2:]))
        found = counts_of(Table({name: table[name].to_list() for name in table.columns}, range(1, len(table) + 1)))
        return {
            period: replace(t, bindings=MappingProxyType(bound), notes=("ready-made counts: duplicates not checked",))
            for period, t in found.items()
        }
    if said.request:
        _refuse_double(rows, "request")
    else:
        notes.append("no request ids: duplicates not checked")
    if said.cluster:
        clusters = _fetch(rows.select("cluster").unique().select(nw.len().alias("n"), nw.col("cluster").is_null().any().alias("gap")))
        if clusters["gap"][0]:
            raise InputError("rows without a cluster", "a cluster for every request", "name it in the engine", column=said.cluster)
        notes.append(f"{clusters['n'][0]} clusters: requests of one cluster are not independent")
    return _tallied(rows, said, bound, notes)


def _settled(lazy: nw.LazyFrame[Any], said: Requests, roles: Mapping[str, str]) -> nw.LazyFrame[Any]:
    """The declared columns under the names of their roles."""
    schema = lazy.collect_schema()
    kept = [column for column in (*roles.values(), said.outcome, *said.counts) if column in schema]
    mixed = [column for column in kept if isinstance(schema[column], nw.Object)]
    if mixed:  # pandas holds truth values with gaps, and whatever else, as objects
        eager = lazy.select(*dict.fromkeys(kept)).collect()
        try:
            lazy = nw.from_native(
                pl.DataFrame({name: [plain_value(value) for value in eager[name].to_list()] for name in eager.columns}, strict=True)
            ).lazy()
        except (TypeError, pl.exceptions.PolarsError):
            raise InputError(f"values of several kinds in {listing(mixed)}", "one kind in a column", "cast it to text") from None
    values = dict(zip(TALLY[2:], said.counts, strict=True)) if said.passed else {"outcome": said.outcome}
    return lazy.select(
        *(_id(column).alias(role) for role, column in roles.items() if column),
        *(nw.col(column).alias(role) for role, column in values.items()),
    )


def _planned(lazy: nw.LazyFrame[Any], inventory: nw.LazyFrame[Any], said: Requests) -> nw.LazyFrame[Any]:
    """Every declared request with the outcome that its row has, null where it has no row."""
    if not said.request or said.passed:
        raise InputError("an inventory of requests, and no request column", "request ids to match", 'declare it: request="id"')
    if lazy.implementation is not inventory.implementation:
        raise InputError(
            f"rows in {lazy.implementation.value} and an inventory in {inventory.implementation.value}", "one engine", "load both in one"
        )
    roles = {"period": said.period, "group": said.group, "request": said.request} | ({"cluster": said.cluster} if said.cluster else {})
    require({role: name for role, name in roles.items() if not name.startswith("= ")}, inventory.collect_schema().names(), _HINT)
    header = lazy.collect_schema().names()
    require({"request": said.request, "outcome": said.outcome}, header, _HINT)
    plan = inventory.select(*(_id(column).alias(role) for role, column in roles.items()))
    again = {role: column for role, column in roles.items() if column in header and role != "request"}
    rows = lazy.select(
        _id(said.request).alias("request"),
        nw.col(said.outcome).alias("outcome"),
        *(_id(column).alias(f"row {role}") for role, column in again.items()),
    )
    _refuse_double(plan, "request of the inventory")
    _refuse_double(rows, "request")
    strange = _fetch(rows.select("request").join(plan.select("request"), on="request", how="anti").select("request").unique().head(6))
    if len(strange):
        raise InputError(f"requests outside the declared inventory: {listing(in_order(map(str, strange['request'])))}",
                         "only declared requests", "correct the ids, or declare them", column=said.request)  # fmt: skip
    both = plan.join(rows, on="request", how="left")
    for role in again:
        unlike = _fetch(both.filter(nw.col(role) != nw.col(f"row {role}")).select("request", role, f"row {role}").sort("request").head(1))
        if len(unlike):
            request, planned, found = unlike.row(0)
            raise InputError(f"request {quote(request)} in {role} {quote(found)}", f"{quote(planned)}, as the inventory declares",
                             "restore the original label", column=again[role])  # fmt: skip
    return both.select(*roles, "outcome")


def _refuse_double(rows: nw.LazyFrame[Any], what: str) -> None:
    doubles = _fetch(rows.group_by("request").agg(nw.len().alias("n")).filter((nw.col("n") > 1) | nw.col("request").is_null()).head(1000))
    if not len(doubles):
        return
    if doubles["request"].null_count():
        raise InputError(f"a null {what}", "an id for every request", "write it; without ids leave the request column out")
    first = in_order(doubles["request"])[0]
    n = doubles.filter(pl.col("request") == first)["n"][0]
    groups: list[str] = []
    if "group" in rows.collect_schema().names():
        groups = in_order(map(str, _fetch(rows.filter(nw.col("request") == first).select("group").unique().head(6))["group"]))
    where = f" in groups {listing(groups)}" if len(groups) > 1 else ""
    more = f", and {len(doubles) - 1}{' or more' if len(doubles) == 1000 else ''} more requests with doubles" if len(doubles) > 1 else ""
    raise InputError(f"{what} {quote(first)} {n} times{where}{more}", "one row per request",
                     "remove the duplicates; the kit does not choose between two results")  # fmt: skip


def _tallied(rows: nw.LazyFrame[Any], said: Requests, bindings: Mapping[str, str], notes: Sequence[str]) -> dict[str, Tally]:
    seen = _fetch(rows.select("outcome").unique().head(_MOST_KINDS + 1))["outcome"]
    if len(seen) > _MOST_KINDS:
        raise InputError(f"more than {_MOST_KINDS} different outcomes", "verdicts", f"is {quote(said.outcome)} the right column?")
    read: dict[int, list[object]] = {PASS: [], FAIL: []}
    for value in sorted(seen, key=repr):
        try:
            read.setdefault(said.reading.read(value)[0], []).append(value)
        except EvalkitError as error:
            error.column = said.outcome
            raise
    if said.passes and not read[PASS]:
        raise no_pass(said.reading, [str(value) for value in seen])
    floats = isinstance(rows.collect_schema()["outcome"], nw.Float64)
    one, zero = nw.lit(1, nw.Int64), nw.lit(0, nw.Int64)
    passed, failed = (nw.when(_among(read[code], floats)).then(one).otherwise(zero) for code in (PASS, FAIL))
    counted = _fetch(
        rows.select("period", "group", passed=passed, failed=failed)
        .group_by("period", "group")
        .agg(nw.col("passed").sum(), nw.col("failed").sum(), nw.len().alias("rows"))
    )
    counts: dict[str, dict[str, tuple[int, ...]]] = {}
    for period, group, x, y, n in counted.select("period", "group", "passed", "failed", "rows").rows():
        counts.setdefault(period, {})[group] = (int(x), int(x) + int(y), int(n))
    frozen = MappingProxyType(dict(bindings))
    return {period: replace(Tally.of(period, counts[period], frozen), notes=tuple(notes)) for period in in_order(counts)}


def scan(path: Path, data: bytes) -> pl.LazyFrame:
    """A table as a lazy frame; a CSV is read strictly, and as text."""
    if data[:4] == b"PAR1":
        return pl.scan_parquet(io.BytesIO(data))
    is_json = data[:100].removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{")
    table = _records(load(data), None) if is_json else _parse(data, [])
    columns = {name: list(map(plain_value, values)) for name, values in table.columns.items()}
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        if Decimal in kinds:  # exact as its text
            columns[name] = [None if value is None else str(value) for value in values]
        elif len(kinds) > 1 or kinds & {dict, list}:
            raise InputError(f"values of several kinds in {quote(name)}", "one kind in a column", "cast it to text", file=path)
    return pl.LazyFrame(columns)


def plain_csv(data: bytes, header: Sequence[str], separator: str, said: Columns, inventory: Inventory | None) -> Campaign | None:
    """A campaign from a large CSV that is plain: no quote, and the separators of the header in every row.

    None where it is not, or where anything is to be refused: the strict reader then says what, and in which row.
    """
    end = b"\r\n" if data[: data.find(b"\n")].endswith(b"\r") else b"\n"
    row = separator.encode() * (len(header) - 1) + end
    kept = set(b'\n\r\0"' + separator.encode())
    other = bytes(byte for byte in range(256) if byte not in kept)
    seen = 0
    for start in range(0, len(data), _PIECE):
        marks = data[start : start + _PIECE].translate(None, other)
        pattern = row * (len(marks) // len(row) + 2)
        if marks != pattern[seen : seen + len(marks)]:
            return None
        seen = (seen + len(marks)) % len(row)
    if seen != (0 if data.endswith(end) else len(row) - len(end)):
        return None
    try:
        if not data.isascii() and "\ufeff" in data.decode():
            return None
        lazy = nw.from_native(pl.scan_csv(data, infer_schema=False, separator=separator, quote_char=None)).with_columns(
            nw.all().fill_null("")
        )
        schema = lazy.collect_schema()
        if schema.names() != list(header):
            return None
        bindings = [name for name in BINDINGS if name in header]
        return _numbered(lazy, schema, said, bindings, inventory) or _counted(lazy, schema, said, bindings, inventory)
    except (EvalkitError, UnicodeDecodeError, pl.exceptions.PolarsError):
        return None


def parquet(source: bytes | Path, declared: Callable[[Sequence[str]], Columns], *, inventory: Inventory | None = None) -> Campaign:
    """A campaign from a Parquet file, scanned; a refusal's row is the place in the file, from 1."""
    try:
        scan = pl.scan_parquet(io.BytesIO(source) if isinstance(source, bytes) else source)
        return campaign_of(scan, columns=declared(scan.collect_schema().names()), inventory=inventory)
    except BREAKS as error:
        raise unreadable(error) from None


def unreadable(error: Exception) -> InputError:
    """What the engine says of a file that it cannot follow."""
    reason = str(error).partition("\n")[0]
    return InputError(f"Parquet that cannot be read ({reason})", "a whole Parquet file", "was the copy cut short?")
