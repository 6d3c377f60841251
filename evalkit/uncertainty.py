"""How far the counts could move if the instances were drawn again: intervals, paired comparison, selection, power.

The unit is the instance, or the declared cluster of instances; repetitions are folded first and never counted as more data.
Intervals inform: no verdict of the kit depends on one. What has no answer is ``Unavailable`` with the reason.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray  # noqa: TC002

from ._exact import as_text, decimal, rational
from .bounds import Unavailable, additive, counts_only, instance_value
from .campaign import Campaign, Instances, Labels, require_complete
from .decide import MET, NOT_EVALUATED, NOT_MET, PROMOTE, Condition, Decision, ReleaseRule, verdict_of
from .errors import CoverageError, InputError, RuleError, listing, quote
from .reductions import Reduction, name_of
from .reweighting import Reference, Tally, group_rates, standardise

__all__ = [
    "FalsePromotion", "Interval", "PValue", "Paired", "Stability", "clopper_pearson", "clustered_wilson", "cr2_difference", "false_promotion",
    "holm", "instances_needed", "mcnemar", "mcnemar_power", "mover", "mover_difference", "paired", "pooled_chances", "selection_stability",
    "sign_flip", "tango", "wilson", "with_margin",
]  # fmt: skip

INDEPENDENT = "assumes independent requests"
_FEW_CLUSTERS = 20
_MOST_STEPS = 300_000  # of the exact sign-flip distribution
_MOST_RESAMPLES = 20_000  # different resamples up to which selection stability is enumerated
_EDGE = 1e-9
_CHUNK = 1_000_000  # numbers drawn at a time


@dataclass(frozen=True)
class Interval:
    """A confidence interval, its method and what it assumes."""

    low: float
    high: float
    method: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f} ({self.method}{f'; {self.note}' if self.note else ''})"


@dataclass(frozen=True)
class PValue:
    """A two-sided p value of no difference, its method and what it cannot say."""

    value: Fraction
    method: str
    note: str = ""

    def __str__(self) -> str:
        return f"p = {float(self.value):.3g} ({self.method}{f'; {self.note}' if self.note else ''})"


@dataclass(frozen=True)
class Paired:
    """Candidate and incumbent on the same instances: which instances were repaired and which regressed, by name.

    An instance is held by a candidate that passed it at least ``at_least`` times. ``differences`` are candidate minus incumbent
    in passes, one per instance.
    """

    candidate: str
    incumbent: str
    at_least: int
    repaired: tuple[str, ...]
    regressed: tuple[str, ...]
    instances: int
    difference: Fraction  # in the share of instances held
    interval: Interval | Unavailable
    test: PValue
    differences: tuple[int, ...]


@dataclass(frozen=True)
class Stability:
    """How often each candidate alone comes first when the instances are drawn again, and how often the first place is tied.

    ``error`` is the largest Monte Carlo standard error, None where every resample was enumerated. Not a probability that a
    candidate is best: it says how much the choice hangs on these instances (Hall and Miller 2009).
    """

    wins: Mapping[str, Fraction]
    tie: Fraction
    resamples: int
    seed: int | None
    error: float | None
    note: str


@dataclass(frozen=True)
class FalsePromotion:
    """How often a gate finds the best challenger above the incumbent if none differs from it, with the Monte Carlo error.

    ``promoted``: one challenger alone was best. ``tied``: several were equally good and above the incumbent, so that the gate
    leaves the choice among them to a person. ``share`` is both together.
    """

    promoted: float
    tied: float
    error: float  # of share
    challengers: int
    instances: int
    repetitions: int
    resamples: int
    seed: int

    @property
    def share(self) -> float:
        """How often a challenger that is no better would be let past the incumbent."""
        return self.promoted + self.tied

    def __str__(self) -> str:
        return (
            f"{self.challengers} challengers that do not differ from the incumbent, {self.instances} instances, {self.repetitions} "
            f"repetitions: the best is above the incumbent in {self.share:.1%} of {self.resamples} draws (+-{1.96 * self.error:.1%}): "
            f"promoted {self.promoted:.1%}, tied with another challenger {self.tied:.1%}"
        )


def wilson(passed: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a pass rate (Wilson 1927): inside [0, 1], with a width at 0 of n and at n of n.

    >>> print(wilson(9, 10))
    0.596 to 0.982 (Wilson, 95%; assumes independent requests)
    """
    _counts(passed, n)
    low, high = _wilson(passed / n, n, _z(confidence))
    return Interval(low, high, f"Wilson, {confidence:.0%}", INDEPENDENT)


def clopper_pearson(passed: int, n: int, *, confidence: float = 0.95) -> Interval:
    """The interval that never covers less than it says, at the price of width (Clopper and Pearson 1934).

    >>> print(clopper_pearson(10, 10))
    0.692 to 1.000 (Clopper-Pearson, 95%; assumes independent requests)
    """
    from scipy.stats import binomtest

    _counts(passed, n)
    _z(confidence)  # refuses what is no confidence
    ci = binomtest(passed, n).proportion_ci(confidence, "exact")
    return Interval(float(ci.low), float(ci.high), f"Clopper-Pearson, {confidence:.0%}", INDEPENDENT)


def clustered_wilson(passed_by_cluster: Sequence[int], sizes: Sequence[int], *, confidence: float = 0.95) -> Interval | Unavailable:
    """Wilson's interval on the effective sample size of clustered results (Korn and Graubard 1998, with Wilson).

    ``passed_by_cluster`` of ``sizes``, one entry per cluster. Where one cluster holds over a third of the requests, the variance and
    degrees of freedom are those of ``cr2_difference``. Where the clusters leave no spread (all pass, all fail, or equal
    rates), each cluster counts as one observation. Unavailable with one cluster.
    """
    if len(passed_by_cluster) != len(sizes):
        raise InputError(f"{len(passed_by_cluster)} counts for {len(sizes)} clusters", "one count per cluster", "pass both in one order")
    for passed, size in zip(passed_by_cluster, sizes, strict=True):
        _counts(passed, size)
    clusters, n, total = len(sizes), sum(sizes), sum(passed_by_cluster)
    if not clusters:
        raise InputError("no cluster", "at least two clusters", "pass the counts of each")
    if clusters == 1:
        return Unavailable("one cluster says nothing about how clusters differ")
    z = _z(confidence)
    # Cluster sums of residuals, times n: whole numbers, so that equal rates give exactly 0.
    residuals = [x * n - total * size for x, size in zip(passed_by_cluster, sizes, strict=True)]
    p = total / n
    note = f"{clusters} clusters" + (", few" if clusters < _FEW_CLUSTERS else "")
    if any(residuals):
        variance, freedom = clusters / (clusters - 1) * sum(s * s for s in residuals) / n**4, clusters - 1.0
        if 3 * max(sizes) > n:  # one cluster dominates: the plain variance is then too small (see test_calibration)
            variance, freedom = _cr2([s / n for s in residuals], sizes)
            note += ", one holds over a third of the requests"
        q = 0.5 + confidence / 2
        effective = p * (1 - p) / variance * (_t(n - 1, q) / _t(freedom, q)) ** 2
    else:
        effective = clusters
        note += "; no spread between clusters, each counts as one"
    low, high = _wilson(p, effective, z)
    return Interval(low, high, f"Wilson on {effective:.1f} effective requests, {confidence:.0%}", note)


def mover(tally: Tally, reference: Reference | Mapping[str, Fraction], *, confidence: float = 0.95) -> Interval:
    """An interval for a standardised rate from the Wilson limits of its groups (Newcombe 1998; Zou and Donner 2008).

    Raises: what ``standardise`` raises.

    >>> print(mover(candidate, reference))
    0.277 to 0.436 (MOVER with Wilson limits, 95%; assumes independent requests)
    """
    weights = reference.weights if isinstance(reference, Reference) else reference
    estimate, z = float(standardise(tally, weights)), _z(confidence)
    down = up = 0.0
    for (group, rate), n in zip(group_rates(tally).items(), tally.assessed, strict=True):
        low, high = _wilson(float(rate), n, z)
        down += (float(weights[group]) * (float(rate) - low)) ** 2
        up += (float(weights[group]) * (high - float(rate))) ** 2
    return Interval(estimate - math.sqrt(down), estimate + math.sqrt(up), f"MOVER with Wilson limits, {confidence:.0%}", INDEPENDENT)


def mover_difference(before: Tally, after: Tally, reference: Reference | Mapping[str, Fraction], *, confidence: float = 0.95) -> Interval:
    """An interval for after minus before at the reference's mix, of two periods of different requests (square and add: Newcombe 1998).

    >>> print(mover_difference(baseline, candidate, reference))
    -0.179 to -0.009 (MOVER with Wilson limits, 95%; assumes independent requests in two independent periods)
    """
    a, b = (float(standardise(tally, reference)) for tally in (after, before))
    of_a, of_b = (mover(tally, reference, confidence=confidence) for tally in (after, before))
    return Interval(
        a - b - math.hypot(a - of_a.low, of_b.high - b),
        a - b + math.hypot(of_a.high - a, b - of_b.low),
        of_a.method,
        f"{INDEPENDENT} in two independent periods",
    )


def mcnemar(b: int, c: int, *, mid: bool = False) -> PValue:
    """McNemar's exact test: ``b`` instances passed by the candidate alone, ``c`` by the incumbent alone (McNemar 1947).

    ``mid`` halves the weight of the observed table (Fagerland et al. 2013): less conservative, no longer guaranteed.

    >>> mcnemar(5, 0).value, mcnemar(0, 0).value
    (Fraction(1, 16), Fraction(1, 1))
    """
    _discordant(b, c)
    m, least = b + c, min(b, c)
    terms = list(itertools.accumulate(range(least), lambda term, i: term * (m - i) // (i + 1), initial=1))
    doubled = 2 * sum(terms)
    p = min(Fraction(1), Fraction(doubled, 2**m))
    if mid and m:
        p = 1 - Fraction(terms[-1], 2 ** (m + 1)) if b == c else Fraction(doubled - terms[-1], 2**m)
    note = f"{b} against {c} instances" if m else "no instance differs: this cannot decide, and it does not show equality"
    return PValue(p, "McNemar, mid-p" if mid else "McNemar, exact", note)


def tango(b: int, c: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Tango's score interval for the difference of two paired pass rates (Tango 1998).

    ``b`` instances of ``n`` passed by the candidate alone, ``c`` by the incumbent alone. Not for clustered instances.

    >>> print(tango(0, 0, 10))
    -0.278 to 0.278 (Tango, 95%; assumes independent instances)
    """
    _discordant(b, c)
    _counts(b + c, n)
    z = _z(confidence)

    def excess(d: float, sign: int) -> float:
        """The score at a true difference d, less its critical value, without a division that could be 0/0."""
        linear, constant = (2 * n - b + c) * d - b - c, -c * d * (1 - d)
        q = (math.sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
        return b - c - n * d - sign * z * math.sqrt(n * max(0.0, 2 * q + d * (1 - d)))

    estimate = (b - c) / n
    # At the estimate itself the score is 0, and 0/0 where all pairs agree or all differ one way.
    low = -1.0 if c == n else _root(lambda d: excess(d, 1), -1, estimate - _EDGE)
    high = 1.0 if b == n else _root(lambda d: excess(d, -1), estimate + _EDGE, 1)
    return Interval(float(low), float(high), f"Tango, {confidence:.0%}", "assumes independent instances")


def sign_flip(differences: Sequence[int | Fraction], *, resamples: int = 9_999, seed: int = 0) -> PValue:
    """The exact paired test of no difference: every sign pattern of the differences is as likely (Fisher 1935).

    Exact by convolution while the sums are few, else a seeded draw with p = (b + 1) / (m + 1), which is never 0 (Phipson and
    Smyth 2010). Ties are exact. For clustered instances pass the sums of each cluster.

    >>> sign_flip([1, 1, 1, 1, 1, 0]).value, sign_flip([0, 0, 0]).value
    (Fraction(1, 16), Fraction(1, 1))
    """
    exact = [rational(d) for d in differences]
    if not exact:
        raise InputError("no difference", "one difference per instance", "pair candidate and incumbent on the same instances")
    scale = math.lcm(*(d.denominator for d in exact))
    sizes = Counter(abs(int(d * scale)) for d in exact if d)
    observed = abs(int(sum(exact) * scale))
    spread = _flips(sizes)
    note = "" if sizes else "no instance differs: this cannot decide, and it does not show equality"
    if spread is not None:
        extreme = sum(count for total, count in spread.items() if abs(total) >= observed)
        return PValue(Fraction(extreme, 2 ** sizes.total()), "sign-flip, exact", note)
    if sum(size * n for size, n in sizes.items()) >= 2**62:
        raise InputError(
            "differences of too many digits", "differences whose sum fits 62 bits", "round them to the digits that were measured"
        )
    rng = np.random.default_rng(seed)
    draws = sum(size * (2 * rng.binomial(n, 0.5, resamples) - n) for size, n in sizes.items())
    extreme = int(np.count_nonzero(np.abs(draws) >= observed))
    return PValue(_monte_carlo(extreme, resamples), f"sign-flip, {resamples} draws, seed {seed}", note)


def cr2_difference(
    differences: Sequence[int | Fraction], clusters: Sequence[str], *, most: int = 1, confidence: float = 0.95
) -> Interval | Unavailable:
    """The t interval of a mean paired difference with clustered instances (CR2: Bell and McCaffrey 2002, Pustejovsky and Tipton 2018).

    ``differences`` lie in [-most, most], and so does the interval. Unavailable with one cluster, or where the clusters leave no
    spread, since an interval without width would be read as certainty.
    """
    _z(confidence)  # refuses what is no confidence
    exact = [rational(d) for d in differences]
    if len(exact) != len(clusters) or not exact:
        raise InputError(
            f"{len(exact)} differences for {len(clusters)} cluster names", "one of each per instance", "pass both in one order"
        )
    if any(abs(d) > most for d in exact):
        raise InputError(f"a difference outside -{most} to {most}", "differences in that range", "say the largest possible one as most")
    members = Counter(clusters)
    count, mean = len(members), sum(exact, Fraction(0)) / len(exact)
    if count == 1:
        return Unavailable("one cluster says nothing about how clusters differ")
    sums = dict.fromkeys(members, Fraction(0))
    for d, name in zip(exact, clusters, strict=True):
        sums[name] += d - mean
    if not any(sums.values()):
        return Unavailable("the clusters leave no spread, so the interval would have no width")
    variance, freedom = _cr2([float(s) for s in sums.values()], list(members.values()))
    half = _t(freedom, 0.5 + confidence / 2) * math.sqrt(variance)
    note = f"{count} clusters, {freedom:.1f} degrees of freedom" + (", few" if count < _FEW_CLUSTERS else "")
    return Interval(max(-float(most), float(mean) - half), min(float(most), float(mean) + half), f"CR2/t, {confidence:.0%}", note)


def holm(p_values: Sequence[Fraction]) -> list[Fraction]:
    """The p values raised for the number of candidates compared, in the order given (Holm 1979).

    >>> holm([Fraction(1, 100), Fraction(4, 100), Fraction(3, 100), Fraction(1, 200)])
    [Fraction(3, 100), Fraction(3, 50), Fraction(3, 50), Fraction(1, 50)]
    """
    raised = [Fraction(0)] * len(p_values)
    running = Fraction(0)
    for step, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(Fraction(1), (len(p_values) - step) * rational(p_values[place])))
        raised[place] = running
    return raised


def paired(
    candidate: Instances,
    incumbent: Instances,
    *,
    at_least: int,
    clusters: Sequence[str] | None = None,
    mid: bool = False,
    confidence: float = 0.95,
) -> Paired:
    """Candidate against incumbent, instance by instance; an instance is held with at least so many passes (R: fail-closed).

    Without clusters: Tango's interval and McNemar's test. With clusters: the CR2/t interval and the sign-flip of cluster sums.
    Raises: CoverageError if a planned cell is missing; InputError if the instances differ.

    >>> p = paired(fixture["CLAUDE"], fixture["MERGE"], at_least=2)
    >>> p.repaired, p.regressed, p.test.value
    (('i2',), (), Fraction(1, 1))
    """
    require_complete(candidate)
    require_complete(incumbent)
    if candidate.ids != incumbent.ids or not np.array_equal(candidate.planned, incumbent.planned):
        raise InputError("two different sets of cells", "the same instances and repetitions", "compare on one campaign")
    fewest = int(candidate.planned.min())
    if type(at_least) is not int or not 1 <= at_least <= fewest:
        raise RuleError(f"at_least = {quote(at_least)}", f"a whole number from 1 to {fewest} repetitions", "choose such a number")
    ours, theirs = (view.passed >= at_least for view in (candidate, incumbent))
    repaired, regressed = (tuple(itertools.compress(candidate.ids, mask)) for mask in (ours & ~theirs, theirs & ~ours))
    b, c, n = len(repaired), len(regressed), len(candidate.ids)
    held = (ours.astype(np.int64) - theirs.astype(np.int64)).tolist()
    interval: Interval | Unavailable
    if clusters is None:
        interval, test = tango(b, c, n, confidence=confidence), mcnemar(b, c, mid=mid)
    else:
        interval = cr2_difference(held, clusters, confidence=confidence)
        sums: Counter[str] = Counter(dict.fromkeys(clusters, 0))
        for name, d in zip(clusters, held, strict=True):
            sums[name] += d
        test = sign_flip(list(sums.values()))
    passes = tuple((candidate.passed - incumbent.passed).tolist())
    return Paired(candidate.candidate, incumbent.candidate, at_least, repaired, regressed, n, Fraction(b - c, n), interval, test, passes)


def with_margin(campaign: Campaign, rule: ReleaseRule, decision: Decision) -> Decision:
    """The decision with the rule's margin as one more condition; without a margin, the decision itself.

    Met where the lower limit of the paired difference in the share of instances that the rule's reduction holds, one-sided at
    alpha divided by the number of challengers (Bonferroni), is above the margin. Not evaluated where there is no such pair.
    """
    if rule.margin is None:
        return decision
    tried = [s for s in decision.standings if s.candidate != decision.incumbent]
    name = f"ahead of the incumbent by more than {as_text(rule.margin)} of the instances, at alpha {as_text(rule.alpha)} / {len(tried)}"
    state, numbers = NOT_EVALUATED, "no single complete challenger and complete incumbent"
    complete = {s.candidate for s in decision.standings if s.coverage.complete}
    if len(decision.challenger) == 1 and {decision.incumbent, *decision.challenger} <= complete:
        ours, theirs = (campaign.of(who, rule.count_as_fail) for who in (decision.challenger[0], decision.incumbent))
        k = re.fullmatch(r"at_least\(([0-9]+)\)", name_of(rule.reduction))
        level = float(1 - 2 * rule.alpha / len(tried))
        pair = paired(ours, theirs, at_least=int(k[1]) if k else len(campaign.repetitions), clusters=campaign.clusters, confidence=level)
        if isinstance(pair.interval, Unavailable):
            numbers = str(pair.interval)
        else:
            state = MET if pair.interval.low > rule.margin else NOT_MET
            numbers = f"difference {decimal(pair.difference)}, lower limit {pair.interval.low:.3f} ({pair.interval.method})"
    conditions = (*decision.conditions, Condition(name, state, numbers))
    incomplete = [s.candidate for s in decision.standings if not s.coverage.complete]
    verdict = verdict_of(conditions, incomplete) if decision.verdict == PROMOTE else decision.verdict
    return replace(decision, conditions=conditions, verdict=verdict)


def selection_stability(
    campaign: Campaign,
    reductions: Sequence[Reduction],
    candidates: Sequence[str] = (),
    *,
    count_as_fail: Sequence[str] = (),
    resamples: int = 10_000,
    seed: int = 0,
) -> Stability | Unavailable:
    """How often each candidate comes first under a rank key when the instances (or clusters) are drawn again with replacement.

    Whole instances are drawn, for all candidates at once, never repetitions inside them. Instances on which every candidate did
    the same are one pattern; where the patterns are few, all resamples are enumerated. Incomplete candidates are left out.

    >>> from evalkit import cell_mean, read_campaign
    >>> s = selection_stability(read_campaign(), [cell_mean], ["CLAUDE", "MERGE"])
    >>> {name: round(float(share), 3) for name, share in s.wins.items()}, round(float(s.tie), 3)
    ({'CLAUDE': 0.186, 'MERGE': 0.622}, 0.193)
    """
    odd = [name_of(r) for r in reductions if not additive(r)]
    if odd:
        return Unavailable(f"{listing(odd)} is a reduction of your own, of which the kit does not know how it adds up over instances")
    if resamples < 1:
        raise InputError(f"{resamples} resamples", "at least one", "raise it; a thousand or more make the error small")
    views = [campaign.of(name, count_as_fail) for name in (candidates or campaign.candidates)]
    eligible = [view for view in views if view.complete]
    if len(eligible) < 2:
        return Unavailable(f"{len(eligible)} complete candidates, at least two are needed to select from")
    try:
        rows = np.stack([_element(r, eligible) for r in reductions])  # whole numbers: (elements, candidates, instances)
    except CoverageError as gap:
        return Unavailable(gap.found)
    drawn_units = rows.reshape(-1, rows.shape[2]).T
    what = "instances"
    if campaign.clusters:  # every candidate has the same instances in a cluster, so sums order them as means would
        what, labels = "clusters", Labels.of(campaign.clusters)
        sums = np.zeros((len(labels.names), drawn_units.shape[1]), rows.dtype)
        np.add.at(sums, labels.index, drawn_units)
        drawn_units = sums
    n = len(drawn_units)
    if n == 1:
        return Unavailable(f"one of the {what} cannot be drawn differently")
    patterns = Counter(map(tuple, drawn_units.tolist()))
    values = np.array(list(patterns), object)
    if np.abs(values).max() * n < 2**53:  # sums of such whole numbers are exact in floats, and BLAS adds them
        values = values.astype(np.float64)
    times = list(patterns.values())
    names = [view.candidate for view in eligible]
    left_out = [view.candidate for view in views if not view.complete]
    note = f"{n} {what}, {len(times)} patterns" + (f"; incomplete and left out: {listing(left_out)}" if left_out else "")
    shape = len(reductions), len(names)
    if math.comb(n + len(times) - 1, n) <= _MOST_RESAMPLES:
        draws = _compositions(n, len(times))
        weights = [
            math.factorial(n) // math.prod(map(math.factorial, draw)) * math.prod(t**k for t, k in zip(times, draw, strict=True))
            for draw in draws
        ]
        first, sole = _first(np.array(draws, values.dtype) @ values, shape)
        wins = {name: Fraction(sum(itertools.compress(weights, sole & (first == k))), n**n) for k, name in enumerate(names)}
        return Stability(wins, 1 - sum(wins.values(), Fraction(0)), len(draws), None, None, note)
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(names), np.int64)
    # Many patterns may be few in the first element of the key. Those are drawn first, and only a resample that they leave tied
    # is drawn out, each into its instances; a resample costs n numbers then, and a binomial per pattern before.
    kinds: dict[tuple[Any, ...], list[int]] = {}
    few = len(times) * 10 < n
    if not few:
        for i, row in enumerate(drawn_units[:, : len(names)].tolist()):
            kinds.setdefault(tuple(row), []).append(i)
        if len(kinds) * 10 >= n:
            kinds = {(0,) * len(names): list(range(n))}
        heads, member, values = np.array(list(kinds), values.dtype), np.concatenate(list(kinds.values())), drawn_units.astype(values.dtype)
        times = [len(of_kind) for of_kind in kinds.values()]
    sizes = np.array(times)
    left = resamples
    while left:
        size = min(left, max(1, _CHUNK // n))
        drawn = rng.multinomial(n, sizes / n, size)
        if few:
            first, sole = _first(drawn.astype(values.dtype) @ values, shape)
        else:
            first, sole = _first(drawn.astype(values.dtype) @ heads, (1, len(names)))
            tied, starts = np.flatnonzero(~sole), np.cumsum(sizes) - sizes
            inside = np.zeros((len(tied), n), values.dtype)
            for row, times_of in zip(inside, drawn[tied], strict=True):
                if len(sizes) > 1:
                    picked = member[rng.integers(0, np.repeat(sizes, times_of)) + np.repeat(starts, times_of)]
                else:
                    picked = rng.integers(0, n, n)
                row[:] = np.bincount(picked, minlength=n)
            first[tied], sole[tied] = _first(inside @ values, shape)
        counts += np.bincount(first[sole], minlength=len(names))
        left -= size
    wins = {name: Fraction(int(k), resamples) for name, k in zip(names, counts, strict=True)}
    tie = 1 - sum(wins.values(), Fraction(0))
    error = max(_error(int(share * resamples), resamples) for share in (*wins.values(), tie))
    return Stability(wins, tie, resamples, seed, error, note)


def pooled_chances(campaign: Campaign, count_as_fail: Sequence[str] = ()) -> tuple[Fraction, ...]:
    """Each instance's pass rate over all candidates and repetitions: what they share if none differs.

    An instance that all passed, or all failed, keeps a chance of 1 or 0; that draws no luck from it.
    """
    views = [campaign.of(name, count_as_fail) for name in campaign.candidates]
    passed = np.sum([view.passed for view in views], axis=0)
    observed = np.sum([view.passed + view.failed for view in views], axis=0)
    if not observed.all():
        empty = [campaign.instances[i] for i in np.flatnonzero(observed == 0)]
        raise CoverageError(f"no verdict at all for {listing(empty)}", "at least one per instance", "run the missing cells")
    return tuple(Fraction(x, n) for x, n in zip(passed.tolist(), observed.tolist(), strict=True))


def false_promotion(
    rule: ReleaseRule,
    chances: Sequence[Fraction],
    repetitions: int,
    challengers: int,
    *,
    resamples: int = 20_000,
    seed: int = 0,
) -> FalsePromotion | Unavailable:
    """How often a gate would let the best of the challengers past the incumbent if none differed from it.

    The model of no difference: on instance i every repetition of every candidate, the incumbent included, passes with the same
    chance ``chances[i]``, independently. The best challenger under the whole key is then strictly above the incumbent, and at or
    above the floor, as the rule says. Blocking groups, limits and sign-offs could only withhold more.

    >>> from evalkit import read_rule
    >>> round(false_promotion(read_rule(), [Fraction(1, 2)] * 6, repetitions=2, challengers=5).share, 1)
    0.7
    """
    odd = [name_of(r) for r in rule.key if not counts_only(r)]
    if odd:
        return Unavailable(f"no model of no difference for {listing(odd)}; there is one for counts of passes")
    if not chances or min(challengers, repetitions, resamples) < 1:
        found = f"{len(chances)} chances, {repetitions} repetitions, {challengers} challengers, {resamples} resamples"
        raise InputError(found, "at least one of each", "pass them")
    same = Counter(rational(chance) for chance in chances)
    if not all(0 <= chance <= 1 for chance in same):
        raise InputError("a chance outside 0 to 1", "pass rates", "pass one chance per instance")
    # One row per number of passes: what that instance adds to each element of the key, as whole numbers.
    worth = [[instance_value(r, passed, repetitions) for passed in range(repetitions + 1)] for r in rule.key]
    adds = np.array([*map(_whole, worth), range(repetitions + 1)], np.int64).T
    floor = None if rule.floor is None else Fraction(rule.floor) * _scale(worth[0])
    if floor is not None and not isinstance(worth[0][0], int):  # a mean over instances, kept here as a sum
        floor *= len(chances)
    span = len(rule.key) if rule.tie_breakers_may_promote else 1
    rng = np.random.default_rng(seed)
    promoted, tied, left = 0, 0, resamples
    while left:
        size = min(left, max(1, _CHUNK // (len(same) * (challengers + 1) * (repetitions + 1))))
        keys = np.zeros((size, challengers + 1, len(rule.key) + 1), np.int64)  # the last candidate is the incumbent
        for chance, n in same.items():
            p = float(chance)
            shares = np.array([math.comb(repetitions, k) * p**k * (1 - p) ** (repetitions - k) for k in range(repetitions + 1)])
            keys += rng.multinomial(n, shares / shares.sum(), (size, challengers + 1)) @ adds
        key, passes = keys[:, :, :-1], keys[:, :, -1]
        best, sole = _first(key[:, :-1].transpose(0, 2, 1).reshape(size, -1), (len(rule.key), challengers))
        at = np.arange(size)
        duel = np.stack([key[at, best, :span], key[:, -1, :span]], axis=2)
        above, strictly = _first(duel.reshape(size, -1), (span, 2))
        good = (above == 0) & strictly & (passes[at, best] > 0)
        if rule.tie_breakers_may_promote:  # a tie at zero promotes nobody
            good &= duel[:, 0, 0] > 0
        if floor is not None:
            good &= duel[:, 0, 0] >= math.ceil(floor)
        promoted, tied = promoted + int(np.count_nonzero(good & sole)), tied + int(np.count_nonzero(good & ~sole))
        left -= size
    error = _error(promoted + tied, resamples)
    return FalsePromotion(promoted / resamples, tied / resamples, error, challengers, len(chances), repetitions, resamples, seed)


def mcnemar_power(p10: float, p01: float, n: int, *, alpha: float = 0.05, mid: bool = False) -> float:
    """The power of McNemar's test on ``n`` instances, by enumeration.

    ``p10`` is the chance that an instance is passed by the candidate alone, ``p01`` by the incumbent alone. With fewer than six
    instances the exact test can never reach .05.

    >>> mcnemar_power(0.5, 0, 6), mcnemar_power(0.9, 0, 5)
    (0.015625, 0.0)
    """
    from scipy.stats import binom

    if not (p10 >= 0 and p01 >= 0 and p10 + p01 <= 1 and 0 < alpha < 1):
        raise InputError(
            f"chances {p10} and {p01}, alpha {alpha}", "two chances that sum to at most 1, alpha between 0 and 1", "correct them"
        )
    _counts(0, n)
    if not p10 + p01:
        return 0.0
    level = Fraction(str(alpha))  # the decimal that was written, not its binary neighbour
    least, tail, term = -1, 0, 0  # the largest smaller count that is rejected; sums of binomial coefficients up to it; the last one
    critical = []
    for m in range(1, n + 1):
        tail, term = 2 * tail - term, term * m // (m - least)
        while 2 * least + 2 <= m:
            further = term * (m - least) // (least + 1) if least >= 0 else 1
            doubled = 2 * (tail + further)
            p = min(Fraction(1), Fraction(doubled - further if mid and 2 * least + 2 < m else doubled, 2**m))
            if p > level:
                break
            tail, term, least = tail + further, further, least + 1
        critical.append(least)
    totals, cut, share = np.arange(1, n + 1), np.array(critical), p10 / (p10 + p01)
    rejected = binom.cdf(cut, totals, share) + binom.sf(totals - cut - 1, totals, share)
    return float((binom.pmf(totals, n, p10 + p01) * rejected).sum())


def instances_needed(difference: float, between: float, within: float, repetitions: int, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Instances that show a difference in a paired comparison (Miller 2024): more repetitions only shrink ``within``.

    ``between`` is the variance over instances of the paired difference in chances, ``within`` the variance of one repetition
    given the instance, summed over both candidates. Estimate it from at least two repetitions; one repetition does not show it.

    >>> [instances_needed(0.03, 1 / 9, 1 / 3, k) for k in (1, 10)]
    [3876, 1260]
    """
    if not (0 < abs(difference) < math.inf and 0 <= between < math.inf and 0 <= within < math.inf and repetitions >= 1 and 0 < power < 1):
        raise InputError(
            f"difference {difference}, variances {between} and {within}, {repetitions} repetitions, power {power}",
            "a difference other than 0, variances from 0, at least one repetition, a power between 0 and 1",
            "correct them; no number of instances shows a difference of 0",
        )
    z = _z(1 - alpha) + NormalDist().inv_cdf(power)
    return math.ceil(z**2 * (between + within / repetitions) / difference**2)


def _counts(passed: int, n: int) -> None:
    for value in (passed, n):
        if type(value) is not int:
            raise InputError(f"{quote(value)} ({type(value).__name__})", "whole numbers", "pass counts, not rates")
    if not n:
        raise InputError("0 of 0", "at least one request", "an interval without data is unavailable")
    if not 0 <= passed <= n:
        raise InputError(f"{passed} of {n}", "a count from 0 to n", "correct the counts")


def _discordant(b: int, c: int) -> None:
    if type(b) is not int or type(c) is not int or b < 0 or c < 0:
        raise InputError(f"{quote(b)} against {quote(c)}", "two counts from 0", "count the instances that only one of the two passed")


def _z(confidence: float) -> float:
    quantile = 0.5 + confidence / 2
    if not 0.5 < quantile < 1:  # nan too, and a confidence that a float cannot tell from 0 or 1
        raise InputError(f"confidence {confidence}", "a share between 0 and 1, such as 0.95", "correct it")
    return NormalDist().inv_cdf(quantile)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero, by bisection; importing scipy.optimize would cost a report more than all else."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def _t(freedom: float, quantile: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, quantile))


def _cr2(residuals: Sequence[float], sizes: Sequence[int]) -> tuple[float, float]:
    """The CR2 variance of a mean from the residual sums of its clusters, and Satterthwaite's degrees of freedom."""
    n = sum(sizes)
    shares = [size / n for size in sizes]
    variance = sum(s * s / (1 - f) for s, f in zip(residuals, shares, strict=True)) / n**2
    # Under independence: 1/n is the trace of the matrix of the quadratic form, below is n^2 times the sum of its squares.
    squares = sum(f**2 for f in shares)
    cross = sum(f**2 / (1 - f) for f in shares) ** 2 - sum(f**4 / (1 - f) ** 2 for f in shares)
    return variance, 1 / (squares + cross)


def _wilson(p: float, n: float, z: float) -> tuple[float, float]:
    centre, half = (p + z * z / (2 * n)) / (1 + z * z / n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return (0.0 if p == 0 else max(0.0, centre - half)), (1.0 if p == 1 else min(1.0, centre + half))


def _flips(sizes: Mapping[int, int]) -> dict[int, int] | None:
    """Every sum that flipped signs can give and in how many ways, by magnitude and its count; None where that is too much work."""
    spread, steps = {0: 1}, 0
    for size, n in sizes.items():
        steps += len(spread) * (n + 1)
        if steps > _MOST_STEPS:
            return None
        wider: Counter[int] = Counter()
        ways = 1
        for flips in range(n + 1):
            for total, count in spread.items():
                wider[total + size * (2 * flips - n)] += count * ways
            ways = ways * (n - flips) // (flips + 1)
        spread = wider
    return spread


def _monte_carlo(extreme: int, resamples: int) -> Fraction:
    return Fraction(extreme + 1, resamples + 1)


def _error(hits: int, resamples: int) -> float:
    """The standard error of a drawn share; one draw of each kind more, since it would be 0 where all draws agree."""
    smooth = (hits + 1) / (resamples + 2)
    return math.sqrt(smooth * (1 - smooth) / resamples)


def _one(view: Instances, i: int) -> Instances:
    """A candidate's view of one instance."""
    cut = {name: replace(c, numerators=c.numerators[:, i : i + 1], present=c.present[:, i : i + 1]) for name, c in view.columns.items()}
    at = slice(i, i + 1)
    return replace(
        view, ids=view.ids[at], passed=view.passed[at], failed=view.failed[at], planned=view.planned[at], groups=None, columns=cut
    )


def _element(reduction: Reduction, views: Sequence[Instances]) -> NDArray[Any]:
    """What a built-in reduction says of each instance alone, (candidates, instances), as whole numbers in the same order."""
    if counts_only(reduction):
        planned = int(views[0].planned[0])  # a grid plans the same for every instance
        table = np.array(_whole([instance_value(reduction, passed, planned) for passed in range(planned + 1)]), object)
        return np.stack([table[view.passed] for view in views])
    values = [reduction(_one(view, i)) for view in views for i in range(len(view.ids))]
    return np.array(_whole(values), object).reshape(len(views), -1)


def _scale(values: Sequence[int | Fraction]) -> int:
    return math.lcm(*(Fraction(v).denominator for v in values))


def _whole(values: Sequence[int | Fraction]) -> list[int]:
    """The values over their common denominator, which keeps their order."""
    scale = _scale(values)
    return [int(v * scale) for v in values]


def _first(keys: NDArray[Any], shape: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Per row, a candidate whose key is highest, left to right, and whether it alone is. ``keys``: (rows, elements * candidates)."""
    table = keys.reshape(-1, *shape)
    first = np.ones((len(table), shape[1]), bool)
    for element in range(shape[0]):
        values = table[:, element]
        top = np.where(first, values, values.min(axis=1, keepdims=True)).max(axis=1, keepdims=True)
        first &= values == top
    return first.argmax(axis=1), first.sum(axis=1) == 1


def _compositions(n: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to draw n from so many patterns."""
    return [
        tuple(b - a - 1 for a, b in itertools.pairwise((-1, *bars, n + parts - 1)))
        for bars in itertools.combinations(range(n + parts - 1), parts - 1)
    ]
