"""The border between text and exact numbers: text and int in, Fraction out.

Binary floats, booleans and numpy scalars do not cross it: ``Fraction(0.1)`` is not 1/10, ``True`` is not a count, and a
``Fraction`` of ``numpy.int64`` overflows in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TypeGuard

from .errors import InputError, quote

_RATIONAL = re.compile(r"[+-]?[0-9]{1,18}(?:/[0-9]{1,18}|\.[0-9]{1,18})?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)
_LARGEST = Fraction(10) ** 308  # beyond it a number was an overflow where it was written


def is_exact(value: object) -> TypeGuard[int | Fraction]:
    """An int, or a Fraction of ints: one made of numpy integers overflows in silence.

    >>> is_exact(Fraction(1, 2)), is_exact(0.5), is_exact(True)
    (True, False, False)
    """
    return type(value) is int or (isinstance(value, Fraction) and type(value.numerator) is type(value.denominator) is int)


def rational(value: object) -> Fraction:
    """An exact number from an int, a Fraction or text such as ``1/10`` or ``0.1`` (18 digits a side at most).

    >>> rational("1/10") + rational("0.9")
    Fraction(1, 1)
    """
    if is_exact(value):
        return Fraction(value)
    if isinstance(value, str) and _RATIONAL.fullmatch(value):
        _, _, denominator = value.partition("/")
        if denominator and not int(denominator):
            raise InputError(quote(value), "a denominator above zero", "correct the fraction")
        return Fraction(value)
    raise InputError(
        _named(value),
        'an exact number: a whole number, or text such as "1/10" or "0.1" with at most 18 digits a side',
        "write it with the digits 0-9, no space and no exponent"
        if isinstance(value, str)
        else "write it as text, since a binary float cannot hold 1/10",
    )


def measurement(text: str) -> Fraction:
    """The number that a decimal text says, exponent allowed: a score, a cost, a latency.

    >>> measurement("2.5e-1")
    Fraction(1, 4)
    """
    if _DECIMAL.fullmatch(text):
        number = Fraction(Decimal(text))
        if abs(number) < _LARGEST:
            return number
    raise InputError(quote(text), "a finite decimal number such as 0.25 or 2.5e-1", "correct it, or leave it blank if it was not measured")


def count(value: object) -> int:
    """A count from an int or a text of ASCII digits."""
    if type(value) is int and 0 <= value < 10**18:
        return value
    if isinstance(value, str) and _COUNT.fullmatch(value):
        return int(value)
    raise InputError(_named(value), "a count: a whole number from 0, in digits 0-9", "correct it")


def _named(value: object) -> str:
    """What was found instead of a number: text in quotes, anything else with its type."""
    return ("nothing" if not value.strip() else quote(value)) if isinstance(value, str) else f"{quote(value)} ({type(value).__name__})"


def as_text(number: int | Fraction) -> str:
    """``a`` or ``a/b``, the form in which records hold a number.

    >>> as_text(Fraction(5, 12)), as_text(2)
    ('5/12', '2')
    """
    exact = Fraction(number)
    return _digits(exact.numerator) if exact.denominator == 1 else f"{_digits(exact.numerator)}/{_digits(exact.denominator)}"


def _digits(number: int) -> str:
    """Python refuses to write out more than 4,300 digits, which a rate over many groups can have; Decimal does not."""
    return str(number) if number.bit_length() < 10_000 else format(Decimal(number), "f")


def decimal(number: int | Fraction, places: int = 3) -> str:
    """A rounded decimal for reading, ties to even, computed without floats.

    >>> decimal(Fraction(5, 12)), decimal(Fraction(-1, 10), 1)
    ('0.417', '-0.1')
    """
    scaled = round(Fraction(number) * 10**places)
    digits = f"{abs(scaled):0{places + 1}d}"
    sign = "-" if scaled < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def percent(number: int | Fraction, places: int = 1) -> str:
    """A rounded percentage for reading.

    >>> percent(Fraction(9, 20))
    '45.0%'
    """
    return decimal(Fraction(number) * 100, places) + "%"


def percents(first: Fraction, second: Fraction) -> tuple[str, str]:
    """Two percentages with as many places as it takes to tell them apart, where they differ.

    >>> percents(Fraction(9, 20), Fraction(7, 20)), percents(Fraction(1), Fraction(99999, 100000))
    (('45.0%', '35.0%'), ('100.000%', '99.999%'))
    """
    places = next((n for n in range(1, 19) if first == second or percent(first, n) != percent(second, n)), 18)
    return percent(first, places), percent(second, places)


def points(number: int | Fraction, places: int = 1) -> str:
    """A signed difference in percentage points, for reading.

    >>> points(Fraction(-1, 10))
    '-10.0'
    """
    return ("+" if number > 0 else "") + decimal(Fraction(number) * 100, places)


_PARTS = re.compile(r"([0-9]{1,18})", re.ASCII)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts ``i2`` before ``i10``; equal for no two different names.

    >>> sorted(["i10", "i2", "i02"], key=natural)
    ['i2', 'i02', 'i10']
    """
    parts = tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in _PARTS.split(name) if part)
    return (*parts, (-1, len(name), name))


_SHAPE = str.maketrans("123456789", "000000000")


def in_order(names: Iterable[str]) -> list[str]:
    """Names in natural order, an order that does not depend on how they arrived."""
    found = list(names)
    shapes = {name.translate(_SHAPE) for name in found}
    if len(shapes) == 1:  # digits stand under digits: the order of text is the natural one
        return sorted(found)
    head, *others = {shape.rstrip("0") for shape in shapes} or {""}
    if not others and "0" not in head and all(0 < len(shape) - len(head) <= 18 for shape in shapes):  # one number, at the end
        return sorted(found, key=lambda name: (int(name[len(head) :]), len(name), name))
    return sorted(found, key=natural)
