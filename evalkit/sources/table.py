"""Tables of text and rows of values: a campaign, an inventory or tallies, by canonical or by declared columns.

Every column of a CSV is read as text, so ``007`` stays ``007``; header and field counts are checked before anything is
counted. Which column says what is declared (``Columns``), never guessed from values.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np

from .._exact import count, in_order, measurement
from ..campaign import BINDINGS, CODE, MISSING, OUTCOMES, PASS, Campaign, Inventory, Labels, assemble, outcome_code
from ..errors import InputError, listing, quote
from ..reweighting import Tally
from ._json import Lines, Twice, load, refuse

CELL = ("candidate", "instance", "repetition", "outcome")
TALLY = ("period", "group", "passed", "assessed", "requested")
ORDER = "order"

_LARGE = 1_000_000  # bytes

_CONDITION = re.compile(r"\s*(==|>=|<=|>|<)\s*(\S+)\s*", re.ASCII)
_HOLDS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "==": lambda x, bound: x == bound,
    ">=": lambda x, bound: x >= bound,
    "<=": lambda x, bound: x <= bound,
    ">": lambda x, bound: x > bound,
    "<": lambda x, bound: x < bound,
}
_HINT = "candidate=model; instance=task; repetition=seed; outcome=reward; passes=>= 0.5"

_REQUESTS = "period=month; group=kind; outcome=verdict; request=id"


@dataclass(frozen=True)
class Columns:
    """Which column of a table says what, declared before the outcomes are read.

    ``repetition="order"`` numbers the rows of each candidate and instance. ``passes`` is a condition on an exact number
    (``">= 0.5"``), whose numbers become the column ``score``, or the words that pass (``"T"``; then ``fails`` says which fail).
    ``blank`` is the outcome that an empty or null one stands for. ``wide`` names the outcome columns, one per repetition, of
    a table with one row per candidate and instance. ``measured`` names columns of numbers to keep, ``score`` the one to
    keep under that name. ``candidate="= name"`` and ``repetition="= 0"`` say it for a table without such a column.

    >>> Columns.parse("candidate=model; passes=>= 0.5; wide=run 1, run 2").wide
    ('run 1', 'run 2')
    """

    candidate: str = "candidate"
    instance: str = "instance"
    repetition: str = "repetition"
    outcome: str = "outcome"
    passes: str = ""
    fails: str = ""
    blank: str = ""
    group: str = ""
    cluster: str = ""
    detail: str = ""
    score: str = ""
    measured: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.passes[:1] in ("=", ">", "<"):
            match = _CONDITION.fullmatch(self.passes)
            if not match:
                raise InputError(f"passes {quote(self.passes)}", 'a condition such as "== 1" or ">= 0.5"', "correct it")
            measurement(match[2])
            if self.fails:
                raise InputError(f"fails {quote(self.fails)} beside the condition {quote(self.passes)}", "one of them", "remove fails")
        elif bool(self.passes) != bool(self.fails):
            raise InputError(
                f"passes {quote(self.passes)} and fails {quote(self.fails)}",
                'both, or a condition such as passes=">= 0.5"',
                "say which words fail too; a word that is not named is refused",
            )
        if self.blank and self.blank not in OUTCOMES:
            raise InputError(f"blank {quote(self.blank)}", "one of " + ", ".join(OUTCOMES), "say which outcome a blank stands for")

    @classmethod
    def parse(cls, text: str) -> Columns | None:
        """The same from text, as a notebook parameter or a command gives it; blank text is the canonical table."""
        found = declaration(cls, text, _HINT)
        measured, wide = (tuple(name.strip() for name in found.pop(key, "").split(",") if name.strip()) for key in ("measured", "wide"))
        return replace(cls(), **{**found, "measured": measured, "wide": wide}) if text.strip() else None  # type: ignore[arg-type]

    @classmethod
    def canonical(cls, header: Sequence[str]) -> Columns:
        """The canonical table: the columns have the names of their roles, and every other column is a number."""
        known = (*CELL, "detail", "group", "cluster", *BINDINGS)
        group, cluster, detail = (name if name in header else "" for name in ("group", "cluster", "detail"))
        return cls(group=group, cluster=cluster, detail=detail, measured=tuple(name for name in header if name not in known))

    @property
    def condition(self) -> str:
        """The numeric condition, where ``passes`` is one."""
        return self.passes if _CONDITION.fullmatch(self.passes) else ""

    @property
    def roles(self) -> dict[str, str]:
        """Role to column, for every column that the table must have."""
        outcomes = {f"wide {i}": name for i, name in enumerate(self.wide)} or {"repetition": self.repetition, "outcome": self.outcome}
        named = {"candidate": self.candidate, "instance": self.instance, **outcomes}
        named |= {role: getattr(self, role) for role in ("group", "cluster", "detail", "score")}
        named |= {f"measured {i}": name for i, name in enumerate(self.measured)}
        if named.get("repetition") == ORDER:
            del named["repetition"]
        return {role: name for role, name in named.items() if name and not (role in CELL[:3:2] and name.startswith("= "))}

    def require(self, header: Sequence[str]) -> None:
        """Refuse a mapping that names a column which is not there."""
        require(self.roles, header, _HINT)

    def read(self, value: object) -> tuple[int, Fraction | None]:
        """The outcome code of one value, and its number where ``passes`` is a condition on numbers.

        >>> Columns(passes=">= 0.5").read(0.25)
        (2, Fraction(1, 4))
        """
        value = plain_value(value)
        if value is None or (isinstance(value, str) and not value.strip()):
            if self.blank:
                return CODE[self.blank], None
            if value is None:
                raise InputError("a null outcome", "an outcome", 'write it, or say what a null stands for: blank="ungraded"')
            return outcome_code(""), None
        match = _CONDITION.fullmatch(self.passes)
        if match:
            if isinstance(value, str) and value.lower() in MISSING:
                return CODE[value.lower()], None
            try:
                number = Fraction(value) if isinstance(value, (bool, int, Fraction)) else measurement(str(value))
            except InputError:
                raise InputError(
                    f"{quote(value)} where passes is {quote(self.passes)}",
                    "a number, or a reason: " + ", ".join(MISSING),
                    "name the words instead: passes and fails",
                ) from None
            return (PASS if _HOLDS[match[1]](number, measurement(match[2])) else CODE["fail"]), number
        if isinstance(value, str):
            for words, outcome in ((self.passes, "pass"), (self.fails, "fail")):
                if value in [word.strip() for word in words.split(",") if word.strip()]:
                    return CODE[outcome], None
            if self.passes and value.lower() not in MISSING:
                raise InputError(quote(value), f"{self.passes} or {self.fails}, or a reason: " + ", ".join(MISSING), "name the word")
            return outcome_code(value), None
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return (PASS if value else CODE["fail"]), None
        if isinstance(value, (int, float, Decimal, Fraction)):
            raise InputError(f"the number {value}", "a verdict", 'say which numbers pass: passes="== 1", or ">= 0.5"')
        raise InputError(f"{quote(value)} ({type(value).__name__})", "text, a truth value or a number", "name another column as outcome")


def declaration(kind: type[Columns] | type[Requests], text: str, hint: str) -> dict[str, str]:
    """``name=column; name=column`` as a mapping; an unknown or a double name is refused."""
    names = [field.name for field in fields(kind)]
    found: dict[str, str] = {}
    for part in text.split(";") if text.strip() else []:
        key, mark, value = (piece.strip() for piece in part.partition("="))
        if not mark or key not in names or key in found or not value:
            raise InputError(
                f"{quote(part.strip())} in columns {quote(text)}",
                f'one of {", ".join(names)}, each once, as "name=column"',
                f"write it as {quote(hint)}",
            )
        found[key] = value
    return found


def require(roles: Mapping[str, str], header: Sequence[str], hint: str) -> None:
    """Refuse a declaration that names a column which is not there."""
    lacking = {role: name for role, name in roles.items() if name not in header}
    if lacking:
        said = ", ".join(f"{role.split()[0]}={name}" for role, name in lacking.items())
        raise InputError(
            f"no column {listing(list(lacking.values()))} among {', '.join(map(quote, header[:12]))}",
            f"the declared columns {quote(said)}",
            f"name columns of the table, such as {quote(hint)}",
        )


@dataclass(frozen=True)
class Requests:
    """Which column of a table of requests says what: one row per request, or ready-made counts per period and group.

    ``request`` names the id, without which duplicates cannot be checked. ``passed``, ``assessed`` and ``requested`` name the
    columns of ready-made counts. ``period="= May"`` says the period of a table without such a column. A blank outcome is an
    unassessed request.
    """

    period: str = "period"
    group: str = "group"
    outcome: str = "outcome"
    request: str = ""
    cluster: str = ""
    passes: str = ""
    fails: str = ""
    blank: str = "ungraded"
    passed: str = ""
    assessed: str = ""
    requested: str = ""

    def __post_init__(self) -> None:
        if any(self.counts) and not all(self.counts):
            raise InputError(
                f"ready-made counts {quote(self.counts)}", "passed, assessed and requested, all three", "name the other columns"
            )
        _ = self.reading

    @classmethod
    def parse(cls, text: str) -> Requests | None:
        """The same from text; blank text is the canonical table."""
        return replace(cls(), **declaration(cls, text, _REQUESTS)) if text.strip() else None

    @classmethod
    def canonical(cls, header: Sequence[str]) -> Requests:
        """Columns with the names of their roles: counts where all three are there, else one row per request."""
        counts = TALLY[2:] if set(TALLY[2:]) <= set(header) else ("", "", "")
        request, cluster = (name if name in header else "" for name in ("request", "cluster"))
        return cls(request=request, cluster=cluster, passed=counts[0], assessed=counts[1], requested=counts[2])

    @property
    def counts(self) -> tuple[str, str, str]:
        """The columns of ready-made counts."""
        return self.passed, self.assessed, self.requested

    @property
    def reading(self) -> Columns:
        """How outcomes are read."""
        return Columns(outcome=self.outcome, passes=self.passes, fails=self.fails, blank=self.blank)

    def require(self, header: Sequence[str]) -> None:
        """Refuse a declaration that names a column which is not there."""
        own = dict(zip(TALLY[2:], self.counts, strict=True)) if self.passed else {"outcome": self.outcome, "request": self.request}
        roles = {"period": self.period, "group": self.group, "cluster": self.cluster, **own}
        require({role: name for role, name in roles.items() if name and not name.startswith("= ")}, header, _REQUESTS)


def plain_value(value: object) -> object:
    """A value as Python's own, its decimal text kept: a numpy float as its shortest decimal, a NaN as nothing."""
    if isinstance(value, np.generic):
        value = Decimal(str(value)) if isinstance(value, np.floating) and np.isfinite(value) else value.item()
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    return None if isinstance(value, float) and math.isnan(value) else value


def from_rows(
    columns: Mapping[str, Sequence[object]],
    mapping: Columns | None = None,
    *,
    row_numbers: Sequence[int] | None = None,
    inventory: Inventory | None = None,
) -> Campaign:
    """A campaign from equally long columns of text, truth values, numbers and None.

    Without a ``mapping`` the table is canonical. ``row_numbers`` are what a refusal calls the rows, else 1, 2, ...
    Raises: InputError, with row and column, for anything that could be counted wrongly.
    """
    table = Table(dict(columns), row_numbers if row_numbers is not None else range(1, len(next(iter(columns.values()), ())) + 1))
    said = mapping or Columns.canonical(table.header)
    said.require(table.header)
    if not table.rows:
        raise InputError("no rows", "one row per cell", "check that the run wrote its results")
    if said.wide:
        table, said = _long(table, said)
    outcomes, scores = _outcomes(table, said)
    candidates, instances = table.names(said.candidate), table.names(said.instance)
    measured = {name: _numbers(table, name) for name in said.measured}
    if said.score:
        measured["score"] = _numbers(table, said.score)
    elif said.condition:
        measured["score"] = scores
    return assemble(
        candidates,
        instances,
        _in_order(candidates, instances) if said.repetition == ORDER else table.names(said.repetition),
        outcomes,
        groups=table.names(said.group) if said.group else None,
        clusters=table.names(said.cluster) if said.cluster else None,
        columns=measured,
        details=["" if text is None else str(text) for text in table.columns[said.detail]] if said.detail else None,
        bindings=table.bindings(),
        inventory=inventory,
        row_numbers=table.rows,
    )


def campaign(
    source: bytes | Path, *, inventory: Inventory | None = None, repetition: str = "repetition", columns: Columns | str | None = None
) -> Campaign:
    """A campaign from CSV, TSV, Parquet, JSON Lines or a JSON array, as bytes or as the path of an unpacked file.

    Without ``columns`` the table is canonical: ``candidate,instance,repetition,outcome`` and optionally detail, group,
    cluster, grouping_rule, grader_version, case_set, and numeric columns. ``repetition="order"`` numbers the rows.
    Raises: InputError, with row and column, for anything that could be counted wrongly.
    """
    given = Columns.parse(columns) if isinstance(columns, str) else columns

    def declared(header: Sequence[str]) -> Columns:
        said = given or Columns.canonical(header)
        return replace(said, repetition=ORDER) if repetition == ORDER else said

    if _head(source, 4) == b"PAR1":
        from . import frame  # Polars takes a third of a second to import, which a small table need not pay

        return frame.parquet(source, declared, inventory=inventory)
    data = source if isinstance(source, bytes) else source.read_bytes()
    if data[:100].removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{"):
        table = _records(load(data), given)
    else:
        quick = _quick(data.removeprefix(codecs.BOM_UTF8), declared, inventory) if len(data) > _LARGE else None
        if quick is not None:
            return quick
        required = [name for name in CELL if not (repetition == ORDER and name == "repetition")]
        table = _parse(data, required if given is None else tuple(dict.fromkeys(declared([]).roles.values())), declared=given is not None)
    return from_rows(table.columns, declared(table.header), row_numbers=table.rows, inventory=inventory)


def _head(source: bytes | Path, n: int) -> bytes:
    if isinstance(source, bytes):
        return source[:n]
    with source.open("rb") as handle:
        return handle.read(n)


def _quick(data: bytes, declared: Callable[[Sequence[str]], Columns], inventory: Inventory | None) -> Campaign | None:
    """A large and plain table by the fast road; None sends it to the strict reader."""
    first = data[: data.find(b"\n")].decode(errors="replace").rstrip("\r")
    separator = "\t" if "\t" in first and "," not in first else ","
    header = first.split(separator)
    said = declared(header)
    if said.repetition == ORDER or said.measured or said.score or not {*said.roles.values()} <= {*header} or "" in header:
        return None
    from . import frame

    return frame.plain_csv(data, header, separator, said, inventory)


def _records(value: object, said: Columns | None) -> Table:
    """Objects of a JSON array, or one per line, as columns; a key that is not there is null, ``a.b`` is a key inside one."""
    rows = value if isinstance(value, list) else []
    numbers = value.numbers if isinstance(value, Lines) else range(1, len(rows) + 1)
    odd = next((number for number, row in zip(numbers, rows, strict=True) if not isinstance(row, dict)), None)
    if not rows or odd is not None:
        raise InputError("JSON that is not rows", "an array of objects, or one object per line", "check the file", row=odd)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    wanted = [*said.roles.values(), *(name for name in BINDINGS if name in keys)] if said else keys
    columns: dict[str, Sequence[object]] = {
        name: [_inside(row, name, number) for row, number in zip(rows, numbers, strict=True)] for name in wanted
    }
    there = {name: values for name, values in columns.items() if name in keys or any(value is not None for value in values)}
    if said:
        said.require(list(there) if len(there) == len(columns) else [*keys, *there])
    return Table(there, numbers)


def _inside(row: dict[str, object], name: str, number: int) -> object:
    found: object = row
    for key in [name] if name in row else name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, Twice):
        refuse(found, name, "", number)
    return found


def inventory(data: bytes) -> Inventory:
    """The declared instances from CSV bytes: ``instance`` and optionally group, cluster."""
    table = _parse(data, ["instance"])
    extra = [name for name in table.header if name not in ("instance", "group", "cluster")]
    if extra:
        raise InputError(f"column {listing(extra)}", "only instance,group,cluster", "rename or remove it", row=1)
    instances = table.names("instance")
    if len(instances.names) != len(table.rows):
        seen = np.bincount(instances.index)
        twice = np.flatnonzero(instances.index == int(np.argmax(seen > 1)))
        raise InputError(f"instance {quote(instances.names[int(np.argmax(seen > 1))])} twice", "each instance once", "remove one",
                         row=[table.rows[int(i)] for i in twice], column="instance")  # fmt: skip

    def labels(column: str) -> tuple[str, ...] | None:
        if column not in table.header:
            return None
        values = table.names(column)
        return tuple(values.names[i] for i in values.index)

    return Inventory(tuple(instances.names), labels("group"), labels("cluster"))


def tallies(data: bytes) -> dict[str, Tally]:
    """Tallies by period from CSV bytes: ``period,group,passed,assessed,requested``, in natural order of the periods."""
    table = _parse(data, TALLY)
    extra = [name for name in table.header if name not in (*TALLY, *BINDINGS)]
    found = counts_of(table)
    if extra:
        raise InputError(f"column {listing(extra)}", "only " + ",".join((*TALLY, *BINDINGS)), "remove it", row=1)
    return found


def counts_of(table: Table) -> dict[str, Tally]:
    """Tallies from the columns period, group, passed, assessed, requested and optionally the bindings."""
    periods, groups = table.names("period"), table.names("group")
    counts: dict[str, dict[str, tuple[int, ...]]] = {}
    where: dict[tuple[str, str], int] = {}
    for row, number in enumerate(table.rows):
        period, group = periods.names[periods.index[row]], groups.names[groups.index[row]]
        if (period, group) in where:
            raise InputError(f"group {quote(group)} of period {quote(period)} twice", "one row per period and group", "remove one",
                             row=[where[period, group], number])  # fmt: skip
        where[period, group] = number
        triple = []
        for column in TALLY[2:]:
            try:
                triple.append(count(table.columns[column][row]))
            except InputError as error:
                raise table.refuse(column, row, error) from None
        if not triple[0] <= triple[1] <= triple[2]:
            raise InputError(
                f"passed {triple[0]}, assessed {triple[1]}, requested {triple[2]}",
                "passed <= assessed <= requested",
                "correct the counts",
                row=number,
            )
        counts.setdefault(period, {})[group] = tuple(triple)
    bindings = MappingProxyType(table.bindings())
    return {period: Tally.of(period, counts[period], bindings) for period in in_order(counts)}


@dataclass(frozen=True)
class Table:
    """Columns of values and the number by which a refusal calls each row."""

    columns: dict[str, Sequence[object]]
    rows: Sequence[int]

    @property
    def header(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.columns)

    def refuse(self, column: str, row: int, error: InputError) -> InputError:
        """Place a refusal at a cell of the table."""
        error.rows, error.column = (self.rows[row],), column
        return error

    def names(self, column: str) -> Labels:
        """Ids as the table has them: never blank, and no space at an end that a reader would not see."""
        if column.startswith("= "):
            return Labels((column[2:].strip(),), np.zeros(len(self.rows), np.int64))
        values: Sequence[object] = self.columns[column]
        keys = [value if type(value) is str else (type(value), value if isinstance(value, Hashable) else "") for value in values]
        labels = Labels.of(keys)  # type: ignore[arg-type]
        kinds: dict[str, type] = {}
        for row in np.unique(labels.index, return_index=True)[1].tolist():
            value = plain_value(values[row])
            try:
                text = name_text(value, column)
                if kinds.setdefault(text, type(value)) is not type(value):
                    raise InputError(f"{text} both as a number and as text", "one kind of id", "correct one of them")
            except InputError as error:
                raise self.refuse(column, row, error) from None
        return Labels(tuple(kinds), labels.index)

    def bindings(self) -> dict[str, str]:
        """The one value a file may carry of grouping_rule, grader_version and case_set."""
        found = {}
        for column in (name for name in BINDINGS if name in self.columns):
            values = self.names(column)
            if len(values.names) > 1:
                row = int(np.flatnonzero(values.index != values.index[0])[0])
                raise self.refuse(column, row, two_bindings(column, values.names))
            found[column] = values.names[0]
        return found


def name_text(value: object, column: str) -> str:
    """An id as text: text without spaces at its ends, or a whole number."""
    value = plain_value(value)
    if type(value) is int:
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise InputError("a blank " + column, f"a {column} id", "write the id, without spaces around it")
    if not isinstance(value, str):
        raise InputError(f"{quote(value)} ({type(value).__name__})", f"a {column} id", "write the id as text or as a whole number")
    if value != value.strip():
        raise InputError(f"{quote(value)} with a space at an end", f"a {column} id", "write the id, without spaces around it")
    return value


def two_bindings(column: str, values: Sequence[str]) -> InputError:
    """What makes two results incomparable within one table."""
    return InputError(f"{quote(values[0])} and {quote(values[1])}", f"one {column} in a file",
                      "results under two of them are not comparable; split the file")  # fmt: skip


def no_pass(said: Columns, shown: Sequence[str]) -> InputError:
    """A pass condition that no row meets: a wrong column or a wrong condition more often than a run without a pass."""
    return InputError(
        f"no row that passes {quote(said.passes)} among {listing(shown)}", "at least one", "check the column and the condition",
        column=said.wide[0] if said.wide else said.outcome,
    )  # fmt: skip


def _outcomes(table: Table, said: Columns) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], list[Fraction | None]]:
    """Codes and numbers of the outcome column, each distinct value read once."""
    read: dict[tuple[type, object], tuple[int, Fraction | None]] = {}
    codes, scores = np.empty(len(table.rows), np.uint8), []
    for row, value in enumerate(table.columns[said.outcome]):
        key = (type(value), value)
        found = read.get(key) if isinstance(value, Hashable) else None
        if found is None:
            try:
                found = read[key] = said.read(value)
            except InputError as error:
                raise table.refuse(said.outcome, row, error) from None
        codes[row] = found[0]
        scores.append(found[1])
    if said.passes and not (codes == PASS).any():
        raise no_pass(said, [str(key[1]) for key in read])
    return codes, scores


def _long(table: Table, said: Columns) -> tuple[Table, Columns]:
    """One row per cell from one row per candidate and instance; the column's name is the repetition."""
    wide, n = said.wide, len(table.rows)
    if len(set(wide)) != len(wide):
        raise InputError(f"wide {listing(wide)}", "each column once", "correct the declaration")
    long: dict[str, Sequence[object]] = {
        name: [value for value in values for _ in wide] for name, values in table.columns.items() if name not in wide
    }
    long["repetition"] = list(wide) * n
    long["outcome"] = [value for row in zip(*(table.columns[name] for name in wide), strict=True) for value in row]
    return Table(long, [row for row in table.rows for _ in wide]), replace(said, repetition="repetition", outcome="outcome", wide=())


def _numbers(table: Table, column: str) -> list[Fraction | None]:
    """A numeric column: blank where nothing was measured."""
    numbers: list[Fraction | None] = []
    read: dict[Hashable, Fraction | None] = {}
    for row, given in enumerate(table.columns[column]):
        if isinstance(given, Hashable) and given in read:
            numbers.append(read[given])
            continue
        value = plain_value(given)
        try:
            if isinstance(value, bool):
                raise InputError(f"{value} (bool)", "a number", "")
            numbers.append(None if value is None or value == "" else measurement(str(value)))
        except InputError as error:
            error.todo = f"correct it, leave it blank, or remove the column; the columns that may hold words are {', '.join((*CELL, 'detail', 'group', 'cluster', *BINDINGS))}"
            raise table.refuse(column, row, error) from None
        read[given] = numbers[-1]
    return numbers


def _in_order(candidates: Labels, instances: Labels) -> Labels:
    """Number the rows of each candidate and instance from 0, in file order."""
    seen: Counter[tuple[int, int]] = Counter()
    ids = []
    for pair in zip(candidates.index.tolist(), instances.index.tolist(), strict=True):
        ids.append(str(seen[pair]))
        seen[pair] += 1
    return Labels.of(ids)


def _parse(data: bytes, required: Sequence[str], *, declared: bool = False) -> Table:
    """A strict CSV, or TSV where the header is one: columns of text, rows as a spreadsheet counts them (the header is row 1)."""
    text = _text(data)
    first = text.split("\n", 1)[0].rstrip("\r")
    rows = _rows(text, "\t" if "," not in first and set(required) <= set(first.split("\t")) and "\t" in first else ",")
    header_row, header = next(rows, (0, []))
    what = "the columns " if declared else "a header: "
    if not header_row:
        raise InputError("an empty file", what + ",".join(required), "check that the run wrote its results")
    if "" in header or not header:
        raise InputError("a column without a name" if header else "a blank line", what + ",".join(required),
                         "name the column, or remove it and its commas" if header else "remove the lines above the header",
                         row=header_row)  # fmt: skip
    twice = [name for name, n in Counter(header).items() if n > 1]
    if twice:
        raise InputError(f"column {listing(twice)} more than once", "each column once", "rename or remove one of them", row=header_row)
    lacking = [name for name in required if name not in header]
    if lacking:
        only = header[0] if len(header) == 1 else ""
        other = next((mark for mark in ";\t|" if mark in only), "")
        declare = ', or declare which is which: columns = "candidate=model; instance=task; ..."' if "outcome" in required else ""
        raise InputError(
            f"the header {quote(only)} separated by {quote(other)}"
            if other
            else f"no column {listing(lacking)} among {', '.join(map(quote, header[:12]))}",
            ("commas between " if other else "the columns ") + ",".join(required),
            "save the table with commas"
            if other
            else "correct the declared columns"
            if declared
            else "rename or add the columns" + declare,
            row=header_row,
        )
    numbers: list[int] = []
    cells: list[list[str]] = []
    blank = 0
    for number, row in rows:
        if not row:
            blank = blank or number
            continue
        if blank:
            raise InputError("a blank line", "one row after another", "remove the blank line", row=blank)
        if len(row) != len(header):
            raise InputError(
                f"{len(row)} field{'s' if len(row) > 1 else ''}",
                f"{len(header)}, as in the header",
                "complete the row; a missing field would move the others" if len(row) < len(header) else "quote fields that hold a comma",
                row=number,
            )
        cells.append(row)
        numbers.append(number)
    if not cells:
        raise InputError("a header and no rows", "at least one row", "check that the run wrote its results")
    return Table(dict(zip(header, zip(*cells, strict=True), strict=True)), numbers)


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("UTF-16 text", "UTF-8", "save the file as CSV UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"the byte 0x{data[error.start]:02x} that is not UTF-8", "UTF-8 text", "save the file as CSV UTF-8", row=row
        ) from None
    if "\0" in text:
        raise InputError("a NUL character", "text", "check that this is a CSV file", row=text.count("\n", 0, text.index("\0")) + 1)
    if "\ufeff" in text:
        at = text.index("\ufeff")
        raise InputError("a byte-order mark inside the text", "one at the very start, or none", "remove it; files were pasted together",
                         row=text.count("\n", 0, at) + 1)  # fmt: skip
    return text


def _rows(text: str, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Rows of a strict CSV, numbered from 1."""
    number = 0
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator), 1):
            yield number, row
    except csv.Error as error:
        if "limit" in str(error):
            raise InputError(f"a field of more than {csv.field_size_limit()} characters", "shorter fields",
                             "close the quote that opens it, or shorten the text", row=number + 1) from None  # fmt: skip
        raise InputError(f"a row that is not CSV ({error})", "fields that hold a comma or a quote in double quotes, a quote inside doubled",
                         "correct the quotes", row=number + 1) from None  # fmt: skip
