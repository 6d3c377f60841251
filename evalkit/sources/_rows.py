"""What every reader returns, one entry per row, and the questions that all readers ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from .._exact import decimal
from ..campaign import CODE, FAIL, PASS
from ..errors import InputError, listing, quote
from ._json import is_one
from .table import Columns

OF_THE_FILE = ""  # the repetition id of a row whose file is one repetition


@dataclass(frozen=True)
class Facts:
    """What a file says about itself; blank where it says nothing."""

    version: str = ""
    task: str = ""
    task_version: str = ""
    dataset: str = ""
    scorer: str = ""
    grader: str = ""
    retry_id: str = ""  # shared by a run and its retries
    created: str = ""
    unfinished: str = ""  # why the run is not whole
    invalidated: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: a cell, its outcome code, and where it stands."""

    candidate: str
    instance: str
    repetition: str
    code: int
    place: int  # entry or line, from 1
    detail: str = ""
    group: str | None = None
    identity: str = ""  # what must be the same wherever the instance occurs, such as a digest of its text
    numbers: Mapping[str, Fraction | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The rows of one file, or of one folder that a tool writes as one, and the cells that it plans."""

    facts: Facts
    rows: Sequence[Row]
    instances: Sequence[str] = ()  # planned, for every candidate of the file
    repetitions: Sequence[str] = ()


@dataclass(frozen=True)
class Options:
    """What the caller chooses where a file leaves a choice."""

    scorer: str = ""
    passes: str = ""
    group: str = ""
    task: str = ""


@dataclass(frozen=True)
class Format:
    """One tool's files: how they are recognised, and the function that reads one."""

    name: str
    looks_for: str
    mine: Callable[[Any], bool]
    rows: Callable[[Path, Any, Options], Rows]
    choices: tuple[str, ...] = ()  # the options that it reads


def has(value: Any, *keys: str) -> bool:
    """An object with all these keys."""
    return isinstance(value, dict) and all(key in value for key in keys)


def choose(found: Sequence[str], wanted: str, what: str, parameter: str = "scorer") -> str:
    """The one name to use; where there are several, the caller names it."""
    if wanted in found or (not wanted and len(found) == 1):
        return wanted or found[0]
    if not found:
        raise InputError(f"no {what}", f"at least one {what}", "check that the run was scored")
    raise InputError(
        f"no {what} {quote(wanted)}" if wanted else f"{len(found)} {what}s, {listing(found, 12)}",
        f"one of {listing(found, 12)}" if wanted else "one of them by name, since a mean over several has no unit",
        f"choose it: {parameter}={quote(found[0])}",
    )


def verdict(value: Fraction | None, passes: str, key: str, where: int | None = None) -> int:
    """The outcome code of a number: 1 passes and 0 fails; any other needs the caller's condition, such as ``>= 0.5``."""
    if value is None:
        return CODE["ungraded"]
    if passes:
        return Columns(passes=passes).read(value)[0]
    if is_one(value) or not value:
        return PASS if value else FAIL
    raise InputError(f"{key} {decimal(value)}", "1 or 0", 'say what passes: passes=">= 0.5", or passes="== 1"', row=where)


def n_of(n: int, what: str) -> str:
    """A count with its noun.

    >>> n_of(1, "file"), n_of(2, "planned cell")
    ('1 file', '2 planned cells')
    """
    return f"{n} {what}{'s' * (n != 1)}"


def disagreement(what: str, published: Fraction | None, computed: Fraction | None, reading: str = "its rows give") -> list[str]:
    """A note where a figure that a file publishes is not what its rows give."""
    if published is None or computed is None or abs(published - computed) < Fraction(1, 10**6):
        return []
    return [f"the file publishes {what} {decimal(published, 4)}; {reading} {decimal(computed, 4)}"]


def mean(values: Sequence[Fraction]) -> Fraction | None:
    """The exact mean of what is there."""
    return sum(values, Fraction(0)) / len(values) if values else None
