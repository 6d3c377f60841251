"""Pass rates under a declared mix of groups, and what of a change is rates and what is mix. Exact arithmetic.

Rates and the observed mix are of assessed requests. A standardised rate is arithmetic, not a replay of the old requests,
and a decomposition is arithmetic, not cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from ._exact import as_text, count, in_order, is_exact, percents
from .decide import MET, NOT_EVALUATED, NOT_MET, Condition
from .errors import CoverageError, MixError, RecordError, listing, quote

__all__ = [
    "Comparison", "Decomposition", "Reference", "Tally", "compare", "decompose", "dominates", "equal_weights", "flip_mix", "group_rates", "is_bound", "observed_mix",
    "observed_rate", "reverses", "standardise",
]  # fmt: skip

MISSING_GROUP_POLICY = "comparison_unavailable"


@dataclass(frozen=True)
class Tally:
    """One period's counts per group: passed, assessed and requested requests, in natural order of the groups."""

    period: str
    groups: tuple[str, ...]
    passed: tuple[int, ...]
    assessed: tuple[int, ...]
    requested: tuple[int, ...]
    bindings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), compare=False)  # the account of what was counted; no part of any digest

    def __post_init__(self) -> None:
        if not self.groups or len(set(self.groups)) != len(self.groups):
            raise MixError(
                f"groups {listing(self.groups)}" if self.groups else "no group",
                "at least one group, each once",
                f"correct the tally of {quote(self.period)}",
            )
        if not len(self.groups) == len(self.passed) == len(self.assessed) == len(self.requested):
            raise MixError(
                f"{len(self.passed)} passed, {len(self.assessed)} assessed, {len(self.requested)} requested counts in {quote(self.period)}",
                f"one of each for the {len(self.groups)} groups",
                "correct the tally",
            )
        for group, *counts in zip(self.groups, self.passed, self.assessed, self.requested, strict=True):
            passed, assessed, requested = map(count, counts)
            if any(isinstance(number, str) for number in counts):
                raise MixError(f"{quote(counts)} in group {quote(group)}", "whole numbers", "convert the text to int")
            if not passed <= assessed <= requested:
                raise MixError(
                    f"passed {passed}, assessed {assessed}, requested {requested} in group {quote(group)} of {quote(self.period)}",
                    "passed <= assessed <= requested",
                    "correct the counts",
                )

    @classmethod
    def of(cls, period: str, counts: Mapping[str, tuple[int, ...]], bindings: Mapping[str, str] | None = None) -> Tally:
        """From ``{group: (passed, assessed)}`` or ``{group: (passed, assessed, requested)}``.

        >>> Tally.of("May", {"routine": (90, 100), "complex": (360, 900)}).groups
        ('complex', 'routine')
        """
        groups = tuple(in_order(counts))
        for group in groups:
            if len(counts[group]) not in (2, 3):
                raise MixError(f"{quote(counts[group])} for group {quote(group)}", "(passed, assessed) or (passed, assessed, requested)",
                               "correct the counts")  # fmt: skip
        full = [(*counts[group], counts[group][1])[:3] for group in groups]
        passed, assessed, requested = (tuple(column) for column in zip(*full, strict=True)) if full else ((), (), ())
        return cls(period, groups, passed, assessed, requested, MappingProxyType(dict(bindings or {})))


@dataclass(frozen=True)
class Reference:
    """A declared mix of groups with its id and purpose, chosen before results. Weights are exact and sum to 1."""

    reference_id: str
    grouping_rule: str
    weights: Mapping[str, Fraction]
    grader_version: str
    purpose: str = ""
    missing_group_policy: str = MISSING_GROUP_POLICY

    def __post_init__(self) -> None:
        _check_weights(self.weights)
        if self.missing_group_policy != MISSING_GROUP_POLICY:
            raise RecordError(
                f"missing_group_policy {quote(self.missing_group_policy)}", quote(MISSING_GROUP_POLICY), "no other is offered"
            )


@dataclass(frozen=True)
class Decomposition:
    """Kitagawa's two-fold split of a change in the observed rate, per group; the parts add up exactly.

    Convention: each rate change is weighed by the mean of the two mixes, each mix change by the mean of the two rates.
    """

    change: Fraction
    rate_effect: Fraction
    mix_effect: Fraction
    rate_by_group: Mapping[str, Fraction]
    mix_by_group: Mapping[str, Fraction]


@dataclass(frozen=True)
class Comparison:
    """Two periods side by side: observed, standardised and equal-weight rates, or why they are unavailable."""

    before: Tally
    after: Tally
    bound: bool  # the data name the grouping rule and grader version of the reference
    observed: tuple[Fraction | None, Fraction | None]
    standardised: tuple[Fraction | None, Fraction | None]
    equal: tuple[Fraction | None, Fraction | None]
    decomposition: Decomposition | None
    reversal: bool | None
    blocking: tuple[Condition, ...]
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """``compared`` or ``unavailable``; a comparison of mixes never promotes."""
        return "compared" if self.decomposition is not None else "unavailable"


def observed_rate(tally: Tally) -> Fraction:
    """Passed of assessed requests over all groups.

    Raises: CoverageError where nothing is assessed. Source: the traffic-mix article.

    >>> observed_rate(baseline), observed_rate(candidate)
    (Fraction(9, 20), Fraction(3, 4))
    """
    if not sum(tally.assessed):
        raise CoverageError(f"no assessed request in {quote(tally.period)}", "at least one", "wait for the verdicts")
    return Fraction(sum(tally.passed), sum(tally.assessed))


def observed_mix(tally: Tally) -> dict[str, Fraction]:
    """Each group's share of the assessed requests.

    Raises: CoverageError where nothing is assessed. Source: the traffic-mix article.

    >>> observed_mix(baseline)
    {'complex': Fraction(9, 10), 'routine': Fraction(1, 10)}
    """
    observed_rate(tally)  # the same refusal where nothing is assessed
    return {group: Fraction(n, sum(tally.assessed)) for group, n in zip(tally.groups, tally.assessed, strict=True)}


def group_rates(tally: Tally) -> dict[str, Fraction]:
    """Passed of assessed requests in each group.

    Raises: MixError for a group in which nothing was assessed: 0/0 is not a rate. Source: the traffic-mix article.

    >>> group_rates(candidate)
    {'complex': Fraction(3, 10), 'routine': Fraction(4, 5)}
    """
    empty = [group for group, n in zip(tally.groups, tally.assessed, strict=True) if not n]
    if empty:
        raise MixError(f"no assessed request in group {listing(empty)} of {quote(tally.period)}", "at least one in every group",
                       "the comparison is unavailable; 0/0 is not a rate")  # fmt: skip
    return {group: Fraction(x, n) for group, x, n in zip(tally.groups, tally.passed, tally.assessed, strict=True)}


def standardise(tally: Tally, reference: Reference | Mapping[str, Fraction]) -> Fraction:
    """The pass rate that the group rates give at the reference's weights (direct standardisation).

    Raises: MixError if the groups differ from the reference's or a group has no assessed request; CoverageError if a group
    has unassessed requests. Source: the traffic-mix article.

    >>> standardise(baseline, reference), standardise(candidate, reference)
    (Fraction(9, 20), Fraction(7, 20))
    """
    weights = reference.weights if isinstance(reference, Reference) else reference
    _check_weights(weights)
    _same_groups(tally.period, _sizes(tally), "the reference", {g: f"weight {as_text(w)}" for g, w in weights.items()})
    rates = _complete_rates(tally)
    return sum((weights[group] * rate for group, rate in rates.items()), Fraction(0))


def equal_weights(groups: Sequence[str]) -> dict[str, Fraction]:
    """Equal importance for every group: an owner's choice, not any period's traffic.

    >>> standardise(baseline, equal_weights(baseline.groups)), standardise(candidate, equal_weights(candidate.groups))
    (Fraction(13, 20), Fraction(11, 20))
    """
    return {group: Fraction(1, len(groups)) for group in groups}


def decompose(before: Tally, after: Tally) -> Decomposition:
    """Split the change of the observed rate into a rate effect and a mix effect (Kitagawa 1955).

    Raises: MixError for unlike groups or a group without assessed requests; CoverageError for unassessed requests.

    >>> d = decompose(baseline, candidate)
    >>> d.change, d.rate_effect, d.mix_effect
    (Fraction(3, 10), Fraction(-1, 10), Fraction(2, 5))
    """
    r0, r1 = _pair(before, after)
    w0, w1 = observed_mix(before), observed_mix(after)
    rate = {group: (w0[group] + w1[group]) / 2 * (r1[group] - r0[group]) for group in before.groups}
    mix = {group: (r0[group] + r1[group]) / 2 * (w1[group] - w0[group]) for group in before.groups}
    change = observed_rate(after) - observed_rate(before)
    return Decomposition(change, sum(rate.values(), Fraction(0)), sum(mix.values(), Fraction(0)), rate, mix)


def dominates(a: Tally, b: Tally) -> bool:
    """Whether ``a`` is at least as good as ``b`` at every possible mix and better at one.

    A weighted mean is extreme where one group has all the weight, so the groups decide.
    Raises: what ``decompose`` raises. Source: a linear function on the mixes has its extremes at their corners.

    >>> dominates(baseline, candidate), dominates(candidate, baseline)
    (True, False)
    """
    differences = _differences(a, b).values()
    return min(differences) >= 0 and max(differences) > 0


def reverses(before: Tally, after: Tally) -> bool:
    """Whether the observed rate moves one way while no group moves that way and one moves the other.

    Raises: what ``decompose`` raises, or CoverageError where nothing is assessed. Source: the traffic-mix article; Simpson 1951.

    >>> reverses(baseline, candidate)
    True
    """
    worse, better = dominates(before, after), dominates(after, before)  # their refusals, whatever the change
    change = observed_rate(after) - observed_rate(before)
    return (change > 0 and worse) or (change < 0 and better)


def flip_mix(a: Tally, b: Tally) -> dict[str, Fraction] | None:
    """For two groups, the mix at which ``a`` and ``b`` tie and beyond which their order flips; None where it never does.

    Raises: MixError for more or fewer than two groups, else what ``decompose`` raises. Source: two straight lines cross once.

    >>> flip_mix(Tally.of("a", {"x": (8, 10), "y": (2, 10)}), Tally.of("b", {"x": (6, 10), "y": (6, 10)}))
    {'x': Fraction(2, 3), 'y': Fraction(1, 3)}
    """
    differences = _differences(a, b)
    if len(differences) != 2:
        raise MixError(f"{len(differences)} groups", "two groups", "with more, the mixes that tie are not one point; use dominates")
    (first, d1), (second, d2) = differences.items()
    if d1 * d2 >= 0:
        return None
    return {first: d2 / (d2 - d1), second: d1 / (d1 - d2)}


def compare(before: Tally, after: Tally, reference: Reference, blocking_groups: Sequence[str] = ()) -> Comparison:
    """Everything that a mix report shows of two periods; where groups or verdicts are missing, why nothing is compared.

    A blocking group is decided outside the weights: every requested case of it must have passed in ``after``.
    Raises: MixError where the data name another grouping rule or grader version than the reference.

    >>> found = compare(baseline, candidate, reference)
    >>> found.verdict, found.standardised, found.reversal
    ('compared', (Fraction(9, 20), Fraction(7, 20)), True)
    """
    bound = is_bound(before.bindings, reference) & is_bound(after.bindings, reference)
    reasons: list[str] = []
    standardised: tuple[Fraction | None, Fraction | None]
    equal: tuple[Fraction | None, Fraction | None]
    try:
        first, second = standardise(before, reference), standardise(after, reference)
        standardised = first, second
        weights = equal_weights(before.groups)
        equal = standardise(before, weights), standardise(after, weights)
        split, reversal = decompose(before, after), reverses(before, after)
    except (MixError, CoverageError) as gap:
        reasons.append(str(gap))
        standardised, equal, split, reversal = (None, None), (None, None), None, None
    else:
        words = "falls" if second < first else "rises" if second > first else "stays"
        reasons.append(f"at the reference mix the rate {words}: {' to '.join(percents(first, second))}")
        if reversal:
            reasons.append("the observed rate moves the other way than every group: the mix reversed it")
    blocking = tuple(_blocking(after, group) for group in blocking_groups)
    reasons += [f"outside the weights, {c.name}: {c.state} ({c.numbers})" for c in blocking]
    return Comparison(
        before, after, bound, (_observed(before), _observed(after)), standardised, equal, split, reversal, blocking, tuple(reasons)
    )


def _observed(tally: Tally) -> Fraction | None:
    return observed_rate(tally) if sum(tally.assessed) else None


def _blocking(tally: Tally, group: str) -> Condition:
    name = f"every request of group {group} passed"
    if group not in tally.groups:
        raise MixError(f"no blocking group {quote(group)} in {quote(tally.period)}", "one of " + listing(tally.groups), "correct the name")
    passed, assessed, requested = (counts[tally.groups.index(group)] for counts in (tally.passed, tally.assessed, tally.requested))
    numbers = f"{passed} of {requested} requests, {assessed} assessed"
    return Condition(name, NOT_MET if passed < assessed else MET if assessed == requested and requested else NOT_EVALUATED, numbers)


def is_bound(bindings: Mapping[str, str], reference: Reference) -> bool:
    """Whether data name the reference's grouping rule and grader version; data that name another one are refused."""
    wanted = {"grouping_rule": reference.grouping_rule, "grader_version": reference.grader_version}
    for key, want in wanted.items():
        have = bindings.get(key, want)
        if have != want:
            found = f"{key} {quote(have)} in the data"
            raise MixError(
                found, f"{quote(want)}, as the reference {quote(reference.reference_id)} says", "use a reference made for these data"
            )
    return all(key in bindings for key in wanted)


def _differences(a: Tally, b: Tally) -> dict[str, Fraction]:
    rates_a, rates_b = _pair(a, b)
    return {group: rates_a[group] - rates_b[group] for group in a.groups}


def _pair(a: Tally, b: Tally) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    _same_groups(a.period, _sizes(a), quote(b.period), _sizes(b))
    return _complete_rates(a), _complete_rates(b)


def _complete_rates(tally: Tally) -> dict[str, Fraction]:
    rates = group_rates(tally)
    short = [f"{group} {n} of {asked}" for group, n, asked in zip(tally.groups, tally.assessed, tally.requested, strict=True) if n < asked]
    if short:
        raise CoverageError(
            f"unassessed requests in {quote(tally.period)}: {listing(short)} assessed",
            "every request assessed",
            "the comparison is unavailable until they are; an unassessed request is neither a pass nor a fail",
        )
    return rates


def _sizes(tally: Tally) -> dict[str, str]:
    return {g: f"{n} of {asked} assessed" for g, n, asked in zip(tally.groups, tally.assessed, tally.requested, strict=True)}


def _same_groups(name: str, have: Mapping[str, str], other: str, want: Mapping[str, str]) -> None:
    """Refuse unlike inventories of groups, and say how much each group weighs or holds."""
    lacking, extra = [g for g in in_order(want) if g not in have], [g for g in have if g not in want]
    if lacking or extra:
        words = [f"group {listing(lacking)} missing from {quote(name)}"] if lacking else []
        words += [f"group {listing(extra)} of {quote(name)} not in {other}"] if extra else []
        there, wanted = ([f"{g} ({sizes[g]})" for g in in_order(sizes)] for sizes in (have, want))
        raise MixError(
            f"{' and '.join(words)} ({quote(name)} has {listing(there, 12)})",
            f"the groups of {other}: {listing(wanted, 12)}",
            "the comparison is unavailable; a new inventory of groups needs a new reference, weights are never rescaled",
        )


def _check_weights(weights: Mapping[str, Any]) -> None:
    for group, weight in weights.items():
        if not is_exact(weight):
            raise MixError(f"weight {quote(weight)} of group {quote(group)}", 'an exact weight such as "1/10"', "write it as text")
        if weight < 0:
            raise MixError(f"weight {as_text(weight)} of group {quote(group)}", "no negative weight", "correct the reference")
    total = sum(weights.values(), Fraction(0))
    if total != 1:
        raise MixError(f"weights that sum to {as_text(total)}", "exactly 1", "correct the reference; weights are never rescaled")
