"""The refusals of the kit: what was found, what was expected, what to do, and where.

A refusal is raised, never warned: a warning does not reach the reader of a report.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["CoverageError", "EvalkitError", "InputError", "MixError", "RankKeyError", "RecordError", "RuleError"]

_SHOWN = 160  # characters of a stranger's text that a sentence quotes


class EvalkitError(ValueError):
    """A named refusal; its text is one sentence of found, expected and what to do.

    >>> print(InputError("'maybe'", "pass or fail", "correct the row", file="a.csv", row=3, column="outcome"))
    a.csv, row 3, column outcome: found 'maybe'; expected pass or fail; correct the row.
    """

    def __init__(
        self,
        found: str,
        expected: str = "",
        todo: str = "",
        *,
        file: str | os.PathLike[str] | None = None,
        row: int | Sequence[int] | None = None,
        column: str | None = None,
    ) -> None:
        self.found, self.expected, self.todo = found, expected, todo
        self.file = None if file is None else os.fspath(file)
        self.rows: tuple[int, ...] = () if row is None else (row,) if isinstance(row, int) else tuple(row)
        self.column = column
        super().__init__(found, expected, todo)

    def at(self, file: str | os.PathLike[str]) -> EvalkitError:
        """Name the file, unless one is named already."""
        self.file = self.file or os.fspath(file)
        return self

    def __str__(self) -> str:
        place = [plain(self.file)] if self.file else []
        if self.rows:
            numbers = [str(row) for row in self.rows[:8]] + (["..."] if len(self.rows) > 8 else [])
            place.append(("row " if len(self.rows) == 1 else "rows ") + ", ".join(numbers))
        if self.column:
            place.append(f"column {plain(self.column)}")
        parts = [f"found {self.found}"]
        parts += [f"expected {self.expected}"] if self.expected else []
        parts += [self.todo] if self.todo else []
        return _escaped((", ".join(place) + ": " if place else "") + "; ".join(parts) + ("" if parts[-1].endswith("?") else "."))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"Refused: {self}"]


class InputError(EvalkitError):
    """A file, a table or a parameter does not say what its format needs."""


class CoverageError(EvalkitError):
    """A planned cell or an assessed request is missing where a number needs all of them."""


class RankKeyError(EvalkitError):
    """A rank key that cannot be ordered exactly."""


class RuleError(EvalkitError):
    """A release rule asks for what the data, or the kit, do not have."""


class MixError(EvalkitError):
    """Groups or weights that do not match, so a comparison is unavailable."""


class RecordError(EvalkitError):
    """A rule, reference or decision record is malformed."""


def plain(text: str) -> str:
    r"""One line of printable text: control and direction characters are shown as escapes, long text is cut.

    >>> print(plain("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    shown = _escaped(text)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def _escaped(text: str) -> str:
    return text if text.isprintable() else "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in text)


def quote(value: object) -> str:
    r"""A stranger's value in quotes, on one line, cut to a readable length.

    >>> print(quote("ab\ncd"))
    'ab\ncd'
    """
    if isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to write out an endless number
        return f"a whole number of {value.bit_length()} bits"
    return f"'{plain(value)}'" if isinstance(value, str) else plain(repr(value))


def listing(names: Sequence[str], most: int = 5) -> str:
    """Names in words, the tail counted.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = [plain(name) for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
