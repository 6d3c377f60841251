"""Files of plain rows to one campaign; what a table is and which column says what is the matter of ``table``."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..campaign import Campaign, Inventory
from ..errors import EvalkitError, InputError, listing
from . import table
from ._join import given_name
from ._json import load
from ._rows import has, n_of
from .table import CELL, ORDER, Columns


def plain_rows(value: Any) -> bool:
    """JSON rows that have the canonical names themselves."""
    return has(value[0] if isinstance(value, list) and value else value, "candidate", "instance", "outcome")


def campaign(
    files: Sequence[tuple[Path, bytes]],
    *,
    columns: Columns | None,
    names: Mapping[str, str],
    repetition: str,
    inventory: Inventory | None,
) -> Campaign:
    """One campaign from tables of the same columns; ``names`` may say the candidate of a file that has no such column."""
    if len(files) == 1 and not names and repetition != "file":
        file, data = files[0]
        try:
            made = table.campaign(data, inventory=inventory, repetition=repetition or "repetition", columns=columns)
        except EvalkitError as error:
            raise error.at(file) from None
    else:
        made = _joined(files, columns, names, repetition, inventory)
    return replace(made, notes=(f"table: {n_of(len(files), 'file')}, {n_of(made.rows, 'row')} read = {n_of(made.rows, 'cell')}",))


def _joined(
    files: Sequence[tuple[Path, bytes]], columns: Columns | None, names: Mapping[str, str], repetition: str, inventory: Inventory | None
) -> Campaign:
    said = columns or Columns()
    said = replace(said, repetition={"order": ORDER, "file": "repetition"}.get(repetition, said.repetition))
    whole: dict[str, list[object]] = {}
    where: list[tuple[Path, int]] = []
    used: set[str] = set()
    runs: Counter[str] = Counter()
    for file, data in files:
        by_file, key = given_name(file, "", names)
        given = {said.candidate: by_file} if by_file else {}
        runs[by_file] += 1  # each file is one run of its candidate, or of all where the rows name theirs
        given |= {said.repetition: str(runs[by_file])} if repetition == "file" else {}
        try:
            found, rows = _columns(data, said, columns is not None, given)
        except EvalkitError as error:
            raise error.at(file) from None
        used |= {key} | {str(own) for own in found.get(said.candidate, ())} & set(names)
        if not by_file and said.candidate in found:
            found[said.candidate] = [names.get(str(own), own) for own in found[said.candidate]]
        found |= {column: [text] * len(rows) for column, text in given.items()}
        if whole and set(found) != set(whole):
            raise InputError(f"columns {listing(list(found), 12)}", f"those of the first file, {listing(list(whole), 12)}",
                             "read tables of the same columns together", file=file)  # fmt: skip
        for column, values in found.items():
            whole.setdefault(column, []).extend(values)
        where += [(file, row) for row in rows]
    if set(names) - used:
        raise InputError(f"candidate_names for {listing(sorted(set(names) - used))}", "names for a file or a candidate of the table",
                         "correct the name")  # fmt: skip
    if columns is None:
        said = replace(Columns.canonical(list(whole)), repetition=said.repetition)
    try:
        return table.from_rows(whole, said, row_numbers=range(len(where)), inventory=inventory)
    except EvalkitError as error:
        at = [where[row] for row in error.rows]
        if len({file for file, _ in at}) == 1:
            error.rows = tuple(row for _, row in at)
            raise error.at(at[0][0]) from None
        error.found += "".join(f", {file.name} row {row}" for file, row in at[:4])
        error.rows = ()
        raise


def _columns(data: bytes, said: Columns, declared: bool, given: Mapping[str, str]) -> tuple[dict[str, Sequence[object]], Sequence[int]]:
    """Columns of one file, and the number of each row; what the caller gives need not be there."""
    if data[:4] == b"PAR1":
        import polars  # costs a while, and only Parquet needs it

        try:
            frame = polars.read_parquet(io.BytesIO(data))
        except polars.exceptions.PolarsError as error:
            raise InputError(f"Parquet that cannot be read ({error})", "a whole Parquet file", "was the copy cut short?") from None
        return {name: frame[name].to_list() for name in frame.columns}, range(1, frame.height + 1)
    if data[:100].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{"):
        parsed = table._records(load(data), said if declared else None)
    else:
        needed = said.roles.values() if declared else [name for name in CELL if name in said.roles.values()]
        parsed = table._parse(data, [name for name in dict.fromkeys(needed) if name not in given], declared=declared)
    return dict(parsed.columns), parsed.rows
