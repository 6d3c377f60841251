"""JSON as other tools write it: strict where a verdict could change, tolerant where a tool is known to stray.

Numbers stay exact (``Decimal``), a bare ``NaN`` is a number that no reader takes for a result, a key that occurs twice is
kept as ``Twice`` so that only a reader who needs it refuses, and a file of one object per line is ``Lines``.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._exact import measurement
from ..errors import InputError, listing, plain, quote

_HALF = re.compile("[\ud800-\udfff]")  # half a character, which no report can hold
_LARGE = 2**20  # bytes
_INDENT = 64  # blanks before a colon
_BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
_TOLERANCE = Fraction(1, 10**6)  # the distance from 1 within which a float reward is a pass


_T = TypeVar("_T", list[Any], dict[str, Any])


class Twice(tuple[Any, ...]):
    """The values of a key that occurs more than once."""

    __slots__ = ()


class Lines(list[Any]):
    """One value per line, with the number of each line."""

    def __init__(self, values: Sequence[Any], numbers: Sequence[int]) -> None:
        super().__init__(values)
        self.numbers = numbers


def load(data: bytes) -> Any:
    """The value of a JSON file, or ``Lines``.

    Raises: InputError, with the line, for text that breaks off or is nested beyond any result.
    """
    return parsed(*decoded(data))


def decoded(data: bytes) -> tuple[str, int]:
    """The text of a JSON file, and for a large one how many keys it can have at most; its bytes are needed no longer."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"a byte that is not UTF-8 at offset {error.start}", "UTF-8 text", "check that this is the right file") from None
    return text, _keys_at_most(data) if len(data) > _LARGE else 0


def parsed(text: str, keys: int = 0) -> Any:
    """What ``load`` returns."""
    try:
        return _parse(text, keys)
    except json.JSONDecodeError as error:
        first, mark, _ = text.lstrip().partition("\n")
        if not mark or not _whole(first):
            raise _broken(error) from None
    values, numbers = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(_parse(line))
            except json.JSONDecodeError as error:
                error.lineno = number
                raise _broken(error) from None
            numbers.append(number)
    return Lines(values, numbers)


def _broken(error: json.JSONDecodeError) -> InputError:
    return InputError(f"JSON that breaks ({error.msg})", "a whole JSON file", "was the run or the copy cut short?", row=error.lineno)


def _whole(line: str) -> bool:
    try:
        return isinstance(_parse(line), dict)
    except json.JSONDecodeError:
        return False


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    return found if len(found) == len(items) else _twice(found, items)


def _twice(found: dict[str, Any], items: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {key: [] for key in found}
    for key, value in items:
        values[key].append(value)
    return found | {key: Twice(several) for key, several in values.items() if len(several) > 1}


def _real(digits: str) -> Any:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent beyond any number stays text, which no reader takes for a result
        return digits


_NUMBERS: Any = {  # a file repeats few numbers many times
    "parse_float": lru_cache(10_000)(_real),
    "parse_constant": lambda word: Decimal(word.replace("Infinity", "inf")),
    "parse_int": lru_cache(10_000)(lambda digits: int(digits) if len(digits) <= 18 else Decimal(digits)),
}
_CAREFUL = json.JSONDecoder(object_pairs_hook=_pairs, **_NUMBERS)  # built once: a log has 20,000 members


def _parse(text: str, keys: int = 0) -> Any:
    """A large text is tried the fast way: where its objects hold as many keys as it can have, none came twice."""
    try:
        if keys:
            held = 0

            def count(found: dict[str, Any]) -> dict[str, Any]:
                nonlocal held
                held += len(found)
                return found

            value = json.JSONDecoder(object_hook=count, **_NUMBERS).decode(text)
            if held == keys:
                return value
        return _CAREFUL.decode(text)
    except RecursionError:
        raise InputError("JSON nested beyond any result", "a result file", "check that this is the right file") from None


def _keys_at_most(data: bytes) -> int:
    """The colons that follow a quote, blanks between them or not, unless one backslash says that the quote is text."""
    text = np.frombuffer(data, np.uint8)
    most = 0
    for start in range(0, len(text), _LARGE):
        last = np.flatnonzero(text[start : start + _LARGE] == ord(":")) + (start - 1)
        for _ in range(_INDENT):
            blank = _BLANK[text[last]]
            if not blank.any():
                break
            last -= blank
        told = (text[last - 1] == ord("\\")) & (text[last - 2] != ord("\\"))
        most += int(np.count_nonzero(blank | ((text[last] == ord('"')) & ~told)))
    return most


@contextmanager
def uncollected() -> Iterator[None]:
    """Reading makes no cycles of objects, and Python's looking for them again and again takes a third of the time."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def refuse(value: object, key: str, expected: str, where: int | None = None) -> NoReturn:
    """Refuse the value of a key: twice, or not what the format says."""
    if isinstance(value, Twice):
        raise InputError(f"key {quote(key)} twice: {', '.join(map(_shown, value))}", "each key once", "remove one of them", row=where)
    raise InputError(f"{key} {_shown(value)}", expected, "check the file; the kit does not guess a result", row=where)


def _shown(value: object) -> str:
    return plain(str(value)) if isinstance(value, Decimal) else quote(value)


def take(record: Any, key: str, where: int | None = None) -> Any:
    """The value of a key that the format always has."""
    if not isinstance(record, dict):
        raise InputError(f"{quote(record)}", f"an object with {key}", "check the file", row=where)
    if key not in record:
        raise InputError(f"no {key} among {listing(list(record), 8) or 'no keys'}", f"an entry with {key}",
                         "check the version of the tool that wrote it", row=where)  # fmt: skip
    if isinstance(record[key], Twice):
        refuse(record[key], key, "", where)
    return record[key]


def name(record: Any, key: str, where: int | None = None) -> str:
    """An id, which tools write as text or as a whole number."""
    value = take(record, key, where)
    if type(value) is int or (isinstance(value, str) and value.strip() and not _HALF.search(value)):
        return str(value).strip()
    refuse(value, key, "text or a whole number", where)


def part(record: Any, key: str, kind: type[_T]) -> _T:
    """What a file may say about itself under a key: a list or an object, empty where it says nothing of the kind."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, kind) else kind()


def text(record: Any, *keys: str) -> str:
    """The text at the end of a path of keys, else nothing: for what a file says about itself. Half a character is shown as its escape."""
    value = record
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None or isinstance(value, (dict, list, Twice)) else str(value).encode("utf-8", "backslashreplace").decode()


def number(value: Any, key: str, where: int | None = None) -> Fraction | None:
    """A measured number, exactly; NaN and null are no number."""
    if value is None or (isinstance(value, Decimal) and value.is_nan()):
        return None
    if type(value) is int or (isinstance(value, Decimal) and value.is_finite()):
        try:
            return _measured(str(value))
        except InputError:
            pass
    refuse(value, key, "a finite number", where)


_measured = lru_cache(10_000)(measurement)  # a file repeats few numbers many times


@lru_cache(10_000)
def is_one(value: Fraction) -> bool:
    """A float reward that its tool counts as a pass."""
    return abs(1 - value) <= _TOLERANCE
