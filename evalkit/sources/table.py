"""The canonical tables: a campaign of one row per cell, an inventory, and a tally of one row per period and group.

Every column is read as text, so ``007`` stays ``007``; header and field counts are checked before anything is counted.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from .._exact import count, in_order, measurement
from ..campaign import BINDINGS, Campaign, Inventory, Labels, assemble, outcome_code
from ..errors import InputError, listing, quote
from ..reweighting import Tally

CELL = ("candidate", "instance", "repetition", "outcome")
TALLY = ("period", "group", "passed", "assessed", "requested")


class _Table:
    """Columns of text and the row number of each row, as a spreadsheet counts them (the header is row 1)."""

    def __init__(self, data: bytes, required: Sequence[str]) -> None:
        rows = _rows(_text(data))
        header_row, self.header = next(rows, (1, []))
        if not self.header:
            raise InputError("an empty file", "a header: " + ",".join(required), "check that the run wrote its results")
        twice = [name for name, n in Counter(self.header).items() if n > 1]
        if twice:
            raise InputError(f"column {listing(twice)} more than once", "each column once", "rename or remove one of them", row=header_row)
        lacking = [name for name in required if name not in self.header]
        if lacking:
            only = self.header[0] if len(self.header) == 1 else ""
            other = next((mark for mark in ";\t|" if mark in only), "")
            raise InputError(
                f"the header {quote(only)} separated by {quote(other)}"
                if other
                else f"no column {listing(lacking)} among {listing(self.header, 12)}",
                ("commas between " if other else "the columns ") + ",".join(required),
                "save the table with commas" if other else "rename or add the columns",
                row=header_row,
            )
        self.rows: list[int] = []
        fields: list[list[str]] = []
        blank = 0
        for number, row in rows:
            if not row:
                blank = blank or number
                continue
            if blank:
                raise InputError("a blank line", "one row after another", "remove the blank line", row=blank)
            if len(row) != len(self.header):
                raise InputError(
                    f"{len(row)} fields",
                    f"{len(self.header)}, as in the header",
                    "complete the row; a missing field would move the others"
                    if len(row) < len(self.header)
                    else "quote fields that hold a comma",
                    row=number,
                )
            fields.append(row)
            self.rows.append(number)
        if not fields:
            raise InputError("a header and no rows", "at least one row", "check that the run wrote its results")
        self.columns = {name: list(column) for name, column in zip(self.header, zip(*fields, strict=True), strict=True)}

    def refuse(self, column: str, row: int, error: InputError) -> InputError:
        """Place a refusal at a cell of the table."""
        error.rows, error.column = (self.rows[row],), column
        return error

    def names(self, column: str) -> Labels:
        """Ids as the file has them: never blank, and no space at an end that a reader would not see."""
        labels = Labels.of(self.columns[column])
        for position, name in enumerate(labels.names):
            if not name or name != name.strip():
                row = int(np.flatnonzero(labels.index == position)[0])
                found = "a blank " + column if not name.strip() else f"{quote(name)} with a space at an end"
                raise self.refuse(column, row, InputError(found, f"a {column} id", "write the id, without spaces around it"))
        return labels

    def bindings(self) -> dict[str, str]:
        """The one value a file may carry of grouping_rule, grader_version and case_set."""
        found = {}
        for column in set(BINDINGS) & set(self.header):
            values = self.names(column)
            if len(values.names) > 1:
                row = int(np.flatnonzero(values.index != values.index[0])[0])
                error = InputError(f"{quote(values.names[0])} and {quote(values.names[1])}", f"one {column} in a file",
                                   "results under two of them are not comparable; split the file")  # fmt: skip
                raise self.refuse(column, row, error)
            found[column] = values.names[0]
        return found


def campaign(data: bytes, *, inventory: Inventory | None = None, repetition: str = "repetition") -> Campaign:
    """A campaign from CSV bytes: ``candidate,instance,repetition,outcome`` and optionally detail, group, cluster,
    grouping_rule, grader_version, case_set, and numeric columns.

    Raises: InputError, with row and column, for anything that could be counted wrongly.
    """
    in_file_order = repetition == "order"
    table = _Table(data, [name for name in CELL if not (in_file_order and name == "repetition")])
    words = table.columns["outcome"]
    codes = {}
    for word in set(words):
        try:
            codes[word] = outcome_code(word)
        except InputError as error:
            raise table.refuse("outcome", words.index(word), error) from None
    candidates, instances = table.names("candidate"), table.names("instance")
    known = (*CELL, "detail", "group", "cluster", *BINDINGS)
    return assemble(
        candidates,
        instances,
        _in_order(candidates, instances) if in_file_order else table.names("repetition"),
        np.array([codes[word] for word in words], np.uint8),
        groups=table.names("group") if "group" in table.header else None,
        clusters=table.names("cluster") if "cluster" in table.header else None,
        columns={name: _numbers(table, name) for name in table.header if name not in known},
        details=table.columns.get("detail"),
        bindings=table.bindings(),
        inventory=inventory,
        row_numbers=table.rows,
    )


def inventory(data: bytes) -> Inventory:
    """The declared instances from CSV bytes: ``instance`` and optionally group, cluster."""
    table = _Table(data, ["instance"])
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

    return Inventory(tuple(table.columns["instance"]), labels("group"), labels("cluster"))


def tallies(data: bytes) -> dict[str, Tally]:
    """Tallies by period from CSV bytes: ``period,group,passed,assessed,requested``, in natural order of the periods."""
    table = _Table(data, TALLY)
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
    extra = [name for name in table.header if name not in (*TALLY, *BINDINGS)]
    if extra:
        raise InputError(f"column {listing(extra)}", "only " + ",".join((*TALLY, *BINDINGS)), "remove it", row=1)
    bindings = MappingProxyType(table.bindings())
    return {period: Tally.of(period, counts[period], bindings) for period in in_order(counts)}


def _numbers(table: _Table, column: str) -> list[Fraction | None]:
    """A numeric column: blank where nothing was measured."""
    numbers: list[Fraction | None] = []
    for row, text in enumerate(table.columns[column]):
        try:
            numbers.append(measurement(text) if text else None)
        except InputError as error:
            error.todo = f"correct it, leave it blank, or remove the column; the columns that may hold words are {', '.join((*CELL, 'detail', 'group', 'cluster', *BINDINGS))}"
            raise table.refuse(column, row, error) from None
    return numbers


def _in_order(candidates: Labels, instances: Labels) -> Labels:
    """Number the rows of each candidate and instance from 0, in file order."""
    seen: Counter[tuple[int, int]] = Counter()
    ids = []
    for pair in zip(candidates.index.tolist(), instances.index.tolist(), strict=True):
        ids.append(str(seen[pair]))
        seen[pair] += 1
    return Labels.of(ids)


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("UTF-16 text", "UTF-8", "save the file as CSV UTF-8")
    try:
        text = data.decode("utf-8-sig")
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


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a strict CSV, numbered from 1."""
    number = 0
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), strict=True), 1):
            yield number, row
    except csv.Error as error:
        raise InputError(
            f"a row that is not CSV ({error})", "fields with a comma or a quote in double quotes", "correct the quotes", row=number + 1
        ) from None
