"""Reductions: one candidate's instances to one exact number whose unit is stated.

A reduction is a plain function of ``Instances``. The function that ranks is the function that the gate calls; a reader's
own function, marked with ``unit``, is one too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias, TypeVar

import numpy as np

from ._exact import decimal
from .campaign import Column, Instances, require_complete
from .errors import CoverageError, RuleError, listing, quote

__all__ = [
    "Reduction", "at_least", "cell_mean", "counted", "fail_closed", "lowest", "mean_score", "name_of", "named", "pass_at",
    "pass_hat", "passing_cells", "unit", "unit_of",
]  # fmt: skip

Reduction: TypeAlias = Callable[[Instances], "int | Fraction"]
_R = TypeVar("_R", bound=Reduction)


def unit(what: str) -> Callable[[_R], _R]:
    """State what a reduction counts, once.

    >>> unit_of(fail_closed), unit_of(cell_mean)
    ('instances', 'cells')
    """

    def mark(reduction: _R) -> _R:
        reduction.unit = what  # type: ignore[attr-defined]
        return reduction

    return mark


def unit_of(reduction: Reduction) -> str:
    """The unit that a reduction states; one that states none is refused."""
    stated = getattr(reduction, "unit", None)
    if not isinstance(stated, str) or not stated:
        raise RuleError(f"no unit on {name_of(reduction)}", "a reduction that says what it counts", 'mark it with @unit("instances")')
    return stated


def name_of(reduction: Reduction) -> str:
    """The name under which rules and reports know a reduction."""
    return str(getattr(reduction, "__name__", repr(reduction)))


@unit("cells")
def passing_cells(instances: Instances) -> int:
    """Count the cells that passed.

    Raises: CoverageError if any planned cell is missing. Source: the winner-rule article.

    >>> passing_cells(fixture["CLAUDE"]), passing_cells(fixture["MERGE"])
    (5, 6)
    """
    require_complete(instances)
    return int(instances.passed.sum())


@unit("cells")
def cell_mean(instances: Instances) -> Fraction:
    """The share of all cells that passed (pooled: every cell weighs the same).

    Raises: CoverageError if any planned cell is missing. Source: the winner-rule article; the field's default picker.

    >>> cell_mean(fixture["CLAUDE"]), cell_mean(fixture["MERGE"])
    (Fraction(5, 12), Fraction(1, 2))
    """
    require_complete(instances)
    return Fraction(int(instances.passed.sum()), instances.cells)


@unit("instances")
def fail_closed(instances: Instances) -> int:
    """Count the instances whose every planned repetition passed.

    Raises: CoverageError if any planned cell is missing. Source: the winner-rule article; Yao et al. 2024 (pass^k at k = R).

    >>> fail_closed(fixture["CLAUDE"]), fail_closed(fixture["MERGE"])
    (2, 1)
    """
    require_complete(instances)
    return int(np.count_nonzero(instances.passed == instances.planned))


def at_least(k: int) -> Reduction:
    """Count the instances with at least ``k`` passing repetitions; ``k = R`` is ``fail_closed``.

    Raises: RuleError if k is outside 1..R; CoverageError if any planned cell is missing.
    Source: the winner-rule article's count of resolved instances, with the bar at k instead of R.

    >>> at_least(1)(fixture["MERGE"]), at_least(2)(fixture["MERGE"])
    (5, 1)
    """

    @unit("instances")
    def reduction(instances: Instances) -> int:
        _require_k(k, instances)
        return int(np.count_nonzero(instances.passed >= k))

    reduction.__name__ = f"at_least({k})"
    return reduction


def pass_at(k: int) -> Reduction:
    """pass@k: the chance that at least one of ``k`` repetitions drawn without replacement passed, averaged over instances.

    Raises: RuleError if k is outside 1..R; CoverageError if any planned cell is missing. Source: Chen et al. 2021.

    >>> pass_at(2)(fixture["CLAUDE"]), pass_at(2)(fixture["MERGE"])
    (Fraction(1, 2), Fraction(5, 6))
    """

    @unit(f"draws of {k} repetitions")
    def reduction(instances: Instances) -> Fraction:
        _require_k(k, instances)
        return _average(instances, lambda passed, n: 1 - Fraction(math.comb(n - passed, k), math.comb(n, k)))

    reduction.__name__ = f"pass_at({k})"
    return reduction


def pass_hat(k: int) -> Reduction:
    """pass^k: the chance that all of ``k`` repetitions drawn without replacement passed, averaged over instances.

    ``k = 1`` is the cell mean, ``k = R`` the share that ``fail_closed`` counts.
    Raises: RuleError if k is outside 1..R; CoverageError if any planned cell is missing. Source: Yao et al. 2024.

    >>> pass_hat(1)(fixture["CLAUDE"]), pass_hat(2)(fixture["CLAUDE"]), pass_hat(2)(fixture["MERGE"])
    (Fraction(5, 12), Fraction(1, 3), Fraction(1, 6))
    """

    @unit(f"draws of {k} repetitions")
    def reduction(instances: Instances) -> Fraction:
        _require_k(k, instances)
        return _average(instances, lambda passed, n: Fraction(math.comb(passed, k), math.comb(n, k)))

    reduction.__name__ = f"pass_hat({k})"
    return reduction


@unit("score points")
def mean_score(instances: Instances) -> Fraction:
    """The mean of the numeric column ``score`` over all cells; a cell that a rule counts as fail scores 0.

    Raises: RuleError if the campaign has no score column; CoverageError if any planned cell has no score.
    Source: the winner-rule article, of outcomes that are continuous and whose release rule averages too.

    >>> from evalkit.campaign import PASS, Campaign
    >>> cells = np.full((1, 1, 2), PASS, np.uint8)
    >>> scores = Column(np.array([[[1, 3]]]), 4, np.ones((1, 1, 2), bool))  # 1/4 and 3/4
    >>> mean_score(Campaign(("A",), ("i1", "i2"), ("0",), cells, columns={"score": scores}).of("A"))
    Fraction(1, 2)
    """
    require_complete(instances)
    column = _measured(instances, "score")
    return column.total() / column.present.size


def lowest(column: str) -> Reduction:
    """Minus the total of a numeric column (a cost, a latency), so that the smaller total ranks higher.

    Raises: RuleError if the campaign has no such column; CoverageError if any planned cell is missing or has no number.
    Source: the winner-rule article's cost-adjusted outcome, as a key in which higher is better.

    >>> from evalkit import read_campaign
    >>> from evalkit.records import bundled
    >>> guarded = read_campaign(bundled("fixtures/guarded.csv"))
    >>> lowest("cost")(guarded.of("CLAUDE")), lowest("cost")(guarded.of("MERGE"))
    (Fraction(-42, 1), Fraction(-24, 1))
    """

    @unit(f"total {column}")
    def reduction(instances: Instances) -> Fraction:
        require_complete(instances)
        return -_measured(instances, column).total()

    reduction.__name__ = f"lowest({column})"
    return reduction


def counted(reduction: Reduction, instances: Instances, value: int | Fraction) -> str:
    """A value with the denominator that its fraction forgets.

    >>> counted(cell_mean, fixture["CLAUDE"], Fraction(5, 12)), counted(fail_closed, fixture["CLAUDE"], 2)
    ('5 of 12 cells (0.417)', '2 of 6 instances')
    """
    what = unit_of(reduction)
    whole = {"cells": instances.cells, "instances": len(instances.ids)}.get(what)
    if whole and isinstance(value, int):
        return f"{value} of {whole} {what}"
    if whole and (value * whole).denominator == 1:
        return f"{int(value * whole)} of {whole} {what} ({decimal(value)})"
    return f"{decimal(value)} {what}" if Fraction(value).denominator != 1 else f"{value} {what}"


_BY_NAME = {r.__name__: r for r in (passing_cells, cell_mean, fail_closed, mean_score)}
_WITH_K = {f.__name__: f for f in (at_least, pass_at, pass_hat)}


def named(text: str) -> Reduction:
    """A built-in reduction by the name that a rule file or a parameter gives; no text ever runs code.

    >>> named("at_least(2)").__name__
    'at_least(2)'
    """
    match = re.fullmatch(r"([a-z_]{1,20})(?:\((.{1,100})\))?", text)
    name, argument = (match[1], match[2] or "") if match else ("", "")
    if not argument and name in _BY_NAME:
        return _BY_NAME[name]
    if name in _WITH_K and re.fullmatch(r"[1-9][0-9]{0,3}", argument, re.ASCII):
        return _WITH_K[name](int(argument))
    if name == "lowest" and argument:
        return lowest(argument)
    raise RuleError(
        f"reduction {quote(text)}",
        "one of " + ", ".join([*_BY_NAME, *(f"{f}(k)" for f in _WITH_K), "lowest(column)"]),
        "correct the name; a reduction of your own is passed in Python",
    )


def _require_k(k: int, instances: Instances) -> None:
    require_complete(instances)
    fewest = int(instances.planned.min())
    if type(k) is not int or not 1 <= k <= fewest:
        raise RuleError(f"k = {quote(k)}", f"a whole number from 1 to the {fewest} repetitions of each instance", "choose such a k")


def _average(instances: Instances, chance: Callable[[int, int], Fraction]) -> Fraction:
    """The mean over instances; instances with equal counts share one exact term."""
    total = Fraction(0)
    for n in np.unique(instances.planned).tolist():
        passed, times = np.unique(instances.passed[instances.planned == n], return_counts=True)
        total += sum((t * chance(p, n) for p, t in zip(passed.tolist(), times.tolist(), strict=True)), Fraction(0))
    return total / len(instances.ids)


def _measured(instances: Instances, name: str) -> Column:
    if name not in instances.columns:
        raise RuleError(
            f"no numeric column {quote(name)}",
            "one of " + listing(list(instances.columns)) if instances.columns else "a campaign with that column",
            "add the column to the campaign file",
        )
    column = instances.columns[name]
    gaps = int(column.present.size - np.count_nonzero(column.present))
    if gaps or not column.present.size:
        raise CoverageError(f"{gaps} of {column.present.size} cells of {quote(instances.candidate)} without a {name}",
                            f"a {name} in every planned cell", "measure the missing cells")  # fmt: skip
    return column
