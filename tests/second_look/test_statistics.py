"""Every public statistic of ``evalkit.uncertainty`` by two more routes: scipy, statsmodels, or enumeration in Fractions.

The grids hold the corners: 0 of n, n of n, n = 1, all ties, one cluster, nobody discordant, perfect agreement, confidence near 0
and near 1. Where no library has the method, the second route is its definition, written in another way.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats import proportion
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.descriptivestats import sign_test
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower, normal_sample_size_one_tail

from evalkit import Campaign, InputError, Instances, ReleaseRule, Tally, at_least, cell_mean, fail_closed, passing_cells
from evalkit import uncertainty as kit
from evalkit.campaign import FAIL, PASS
from evalkit.uncertainty import Interval, Unavailable

CONFIDENCES = (1e-6, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-9)
COUNTS = [
    (x, n) for n in (*range(1, 31), 100, 997, 10**6) for x in sorted({*range(min(n, 30) + 1), n // 3, n // 2, n - 1, n} & {*range(n + 1)})
]
getcontext().prec = 50


def ends(interval: Interval | Unavailable) -> tuple[float, float]:
    assert isinstance(interval, Interval), interval
    return interval.low, interval.high


def z_of(confidence: float) -> float:
    return float(stats.norm.isf((1 - confidence) / 2))


# One proportion


def test_wilson(close) -> None:
    for (x, n), confidence in itertools.product(COUNTS, CONFIDENCES):
        ours = ends(kit.wilson(x, n, confidence=confidence))
        ci = stats.binomtest(x, n).proportion_ci(confidence, "wilson")
        close("wilson", "scipy binomtest", ours, (ci.low, ci.high), (x, n, confidence))
        theirs = proportion.proportion_confint(x, n, 1 - confidence, "wilson")
        close(
            "wilson", "statsmodels proportion_confint", ours, tuple(map(float, theirs)), (x, n, confidence), 1e-8
        )  # its alpha is 1 - confidence


def test_wilson_limits_are_the_rates_whose_score_test_is_at_the_critical_value(close) -> None:
    for (x, n), confidence in itertools.product(COUNTS, (0.5, 0.95, 0.999)):
        z = Fraction(z_of(confidence))
        for limit in ends(kit.wilson(x, n, confidence=confidence)):
            p = Fraction(limit)
            gap = n * (Fraction(x, n) - p) ** 2 - z**2 * p * (1 - p)
            close("wilson", "score equation in Fractions", float(gap), 0.0, (x, n, confidence), 1e-7)


def test_clopper_pearson(close) -> None:
    for (x, n), confidence in itertools.product(COUNTS, CONFIDENCES):
        ours = ends(kit.clopper_pearson(x, n, confidence=confidence))
        theirs = proportion.proportion_confint(x, n, 1 - confidence, "beta")
        close("clopper_pearson", "statsmodels proportion_confint", ours, tuple(map(float, theirs)), (x, n, confidence))


def test_clopper_pearson_limits_have_the_tail_that_they_say(close) -> None:
    for (x, n), confidence in itertools.product([pair for pair in COUNTS if pair[1] <= 30], (0.5, 0.8, 0.95, 0.999)):
        low, high = map(Fraction, ends(kit.clopper_pearson(x, n, confidence=confidence)))

        def share(k: int, p: Fraction, n: int = n) -> Fraction:
            return math.comb(n, k) * p**k * (1 - p) ** (n - k)

        tails = sum(share(k, low) for k in range(x, n + 1)), sum(share(k, high) for k in range(x + 1))
        wanted = (0 if x == 0 else (1 - confidence) / 2, 0 if x == n else (1 - confidence) / 2)
        found = (0.0 if x == 0 else float(tails[0]), 0.0 if x == n else float(tails[1]))
        close("clopper_pearson", "binomial tail in Fractions", found, wanted, (x, n, confidence), 1e-9)
        assert (x > 0 or low == 0) and (x < n or high == 1)  # noqa: PT018


# Clusters


def cr2(rows: list[float], clusters: list[int]) -> tuple[float, float]:
    """CR2 variance of a mean and Satterthwaite's degrees of freedom from their matrices, whatever the sizes of the clusters."""
    n = len(rows)
    x, y = np.ones((n, 1)), np.array(rows, float)
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    residuals = (np.eye(n) - hat) @ y
    variance, columns = 0.0, []
    for name in sorted(set(clusters)):
        at = np.array(clusters) == name
        values, vectors = np.linalg.eigh(np.eye(at.sum()) - hat[np.ix_(at, at)])
        adjust = vectors @ np.diag(values**-0.5) @ vectors.T
        weights = (bread @ x[at].T @ adjust).ravel()
        variance += float(weights @ residuals[at]) ** 2
        columns.append((np.eye(n) - hat)[:, at] @ weights)
    p = np.stack(columns, axis=1)
    gram = p.T @ p  # working model: independent rows of equal variance
    return variance, float(np.trace(gram) ** 2 / np.trace(gram @ gram))


def clustered_cases() -> list[tuple[list[int], list[int]]]:
    rng = random.Random(7)
    fixed = [
        ([1, 0], [1, 1]),
        ([2, 0], [2, 2]),
        ([0, 5, 5], [5, 5, 5]),
        ([1, 1], [2, 3]),
        ([9, 0, 1], [10, 1, 1]),
        ([1, 2, 3, 4], [4, 4, 4, 4]),
        ([50, 1, 0], [60, 3, 2]),
    ]
    for count in (2, 3, 5, 8, 25):
        for _ in range(12):
            sizes = [rng.choice((1, 2, 5, 30)) for _ in range(count)]
            fixed.append(([rng.choice((0, size, rng.randint(0, size))) for size in sizes], sizes))
    return fixed


def test_clustered_wilson(close) -> None:
    spread, dominated, plain = 0, 0, 0
    for (passed, sizes), confidence in itertools.product(clustered_cases(), (0.5, 0.8, 0.95, 0.99)):
        got = kit.clustered_wilson(passed, sizes, confidence=confidence)
        rows = [float(k < x) for x, size in zip(passed, sizes, strict=True) for k in range(size)]
        names = [g for g, size in enumerate(sizes) for _ in range(size)]
        p, n, count = Fraction(sum(passed), sum(sizes)), sum(sizes), len(sizes)
        if len({Fraction(x, size) for x, size in zip(passed, sizes, strict=True)}) == 1:
            close("clustered_wilson", "statsmodels, one request per cluster", ends(got), tuple(map(float, proportion.proportion_confint(float(p) * count, count, 1 - confidence, "wilson"))), (passed, sizes))  # fmt: skip
            plain += 1
            continue
        if 3 * max(sizes) > n:
            (variance, freedom), route = cr2(rows, names), "CR2 by matrices, scipy t"
            dominated += 1
        else:
            fit = OLS(np.array(rows), np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": np.array(names), "use_correction": False})
            variance, freedom, route = float(fit.cov_params()[0, 0]) * count / (count - 1), count - 1, "statsmodels OLS clusters, scipy t"
            spread += 1
        ratio = stats.t.isf((1 - confidence) / 2, n - 1) / stats.t.isf((1 - confidence) / 2, freedom)
        effective = float(p * (1 - p)) / variance * ratio**2
        theirs = proportion.proportion_confint(float(p) * effective, effective, 1 - confidence, "wilson")
        close("clustered_wilson", route, ends(got), tuple(map(float, theirs)), (passed, sizes, confidence), 1e-7)
    assert min(spread, dominated, plain) >= 4
    assert isinstance(kit.clustered_wilson([3], [5]), Unavailable)
    with pytest.raises(InputError):
        kit.clustered_wilson([], [])


def paired_cases() -> list[tuple[list[Fraction], list[int]]]:
    rng = random.Random(11)
    cases = []
    for n, count in itertools.product((2, 3, 6, 20, 60), (2, 3, 5, 20)):
        for _ in range(6):
            names = [*range(min(n, count)), *(rng.randrange(count) for _ in range(n - count))]
            cases.append(([Fraction(rng.choice((-2, -1, 0, 0, 1, 2)), 2) for _ in range(n)], names[:n]))
    cases += [
        ([Fraction(1)] * 3 + [Fraction(-1)] * 3, [0, 0, 0, 1, 1, 1]),
        ([Fraction(1), Fraction(0)], [0, 1]),
        ([Fraction(1)] * 9 + [Fraction(0)], [0] * 9 + [1]),
    ]
    return cases


def test_cr2_difference(close) -> None:
    unavailable = 0
    for (differences, names), confidence in itertools.product(paired_cases(), (1e-6, 0.5, 0.95, 0.999)):
        got = kit.cr2_difference(differences, [str(name) for name in names], confidence=confidence)
        if isinstance(got, Unavailable):
            mean = sum(differences) / len(differences)
            sums = Counter({name: Fraction(0) for name in names})
            for d, name in zip(differences, names, strict=True):
                sums[name] += d - mean
            assert len(sums) == 1 or not any(sums.values())
            unavailable += 1
            continue
        rows, mean = list(map(float, differences)), float(sum(differences) / len(differences))
        variance, freedom = cr2(rows, names)
        half = stats.t.isf((1 - confidence) / 2, freedom) * math.sqrt(variance)
        close(
            "cr2_difference",
            "CR2 by matrices, scipy t",
            ends(got),
            (max(-1, mean - half), min(1, mean + half)),
            (differences, names, confidence),
            1e-8,
        )
        sizes = set(Counter(names).values())
        if len(sizes) == 1:  # balanced clusters: CR2 is CR1 with G - 1 degrees of freedom
            count = len(set(names))
            fit = OLS(np.array(rows), np.ones(len(rows))).fit(
                cov_type="cluster", cov_kwds={"groups": np.array(names), "use_correction": False}
            )
            half = stats.t.isf((1 - confidence) / 2, count - 1) * math.sqrt(float(fit.cov_params()[0, 0]) * count / (count - 1))
            close(
                "cr2_difference",
                "statsmodels OLS clusters, balanced",
                ends(got),
                (max(-1, mean - half), min(1, mean + half)),
                (differences, names),
                1e-8,
            )
        if len(set(names)) == len(names):  # every instance its own cluster: the t interval
            low, high = stats.ttest_1samp(rows, 0).confidence_interval(confidence)
            close("cr2_difference", "scipy ttest_1samp, one each", ends(got), (max(-1, low), min(1, high)), (differences, confidence), 1e-8)
    assert unavailable


# Standardised rates


def wilson_in_decimals(x: int, n: int, z: float) -> tuple[Decimal, Decimal]:
    """The two roots in p of (x/n - p)^2 = z^2 p(1-p)/n, to fifty digits."""
    p, q, zz = Decimal(x) / n, Decimal(n), Decimal(z) ** 2
    a, b, c = 1 + zz / q, -(2 * p + zz / q), p * p
    root = (b * b - 4 * a * c).sqrt()
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def mixes() -> list[tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]], dict[str, Fraction]]]:
    rng = random.Random(3)
    cases = []
    for groups in (1, 2, 3, 5):
        for _ in range(25):
            arms = []
            for _ in range(2):
                arm = {}
                for g in range(groups):
                    n = rng.choice((1, 2, 10, 97, 10**6))
                    arm[f"g{g}"] = (rng.choice((0, n, rng.randint(0, n))), n)
                arms.append(arm)
            parts = [rng.choice((0, 1, 3)) for _ in range(groups)]
            parts[0] += not sum(parts)
            cases.append((*arms, {f"g{g}": Fraction(part, sum(parts)) for g, part in enumerate(parts)}))
    return cases


def test_mover_and_the_difference_of_two(close) -> None:
    for (before, after, weights), confidence in itertools.product(mixes(), (1e-6, 0.5, 0.95, 0.999)):
        z = z_of(confidence)
        rates, decimals = [], []
        for arm in (before, after):
            cis = {g: stats.binomtest(x, n).proportion_ci(confidence, "wilson") for g, (x, n) in arm.items()}
            e = sum(float(weights[g]) * x / n for g, (x, n) in arm.items())
            down = np.linalg.norm([float(weights[g]) * (x / n - cis[g].low) for g, (x, n) in arm.items()])
            up = np.linalg.norm([float(weights[g]) * (cis[g].high - x / n) for g, (x, n) in arm.items()])
            rates.append((e, e - down, e + up))
            exact = [
                (Decimal(w.numerator) / w.denominator, Decimal(arm[g][0]) / arm[g][1], *wilson_in_decimals(*arm[g], z))
                for g, w in weights.items()
            ]
            middle = sum(w * p for w, p, _, _ in exact)
            decimals.append((middle, middle - sum((w * (p - low)) ** 2 for w, p, low, _ in exact).sqrt(), middle + sum((w * (high - p)) ** 2 for w, p, _, high in exact).sqrt()))  # fmt: skip
            got = ends(kit.mover(Tally.of("t", arm), weights, confidence=confidence))
            close("mover", "scipy Wilson limits, square and add", got, rates[-1][1:], (arm, weights, confidence), 1e-8)
            close("mover", "fifty decimals", got, tuple(map(float, decimals[-1][1:])), (arm, weights, confidence), 1e-8)
            if len(arm) == 1:
                theirs = proportion.proportion_confint(*arm["g0"], 1 - confidence, "wilson")
                close("mover", "statsmodels, one group", got, tuple(map(float, theirs)), (arm, confidence), 1e-8)
        got = ends(kit.mover_difference(Tally.of("b", before), Tally.of("a", after), weights, confidence=confidence))
        with localcontext(prec=50):
            (b, bl, bu), (a, al, au) = decimals
            limits = a - b - ((a - al) ** 2 + (bu - b) ** 2).sqrt(), a - b + ((au - a) ** 2 + (b - bl) ** 2).sqrt()
        close("mover_difference", "fifty decimals", got, tuple(map(float, limits)), (before, after, weights, confidence), 1e-8)
        if len(before) == 1:
            (x2, n2), (x1, n1) = before["g0"], after["g0"]
            theirs = proportion.confint_proportions_2indep(x1, n1, x2, n2, compare="diff", method="newcomb", alpha=1 - confidence)
            close("mover_difference", "statsmodels Newcombe, one group", got, tuple(map(float, theirs)), (before, after, confidence), 1e-8)


# Pairs


def test_mcnemar(close) -> None:
    for b, c in [*itertools.product(range(26), repeat=2), (0, 500), (500, 0), (480, 520), (3, 900)]:
        exact = kit.mcnemar(b, c).value
        if b + c:
            close("mcnemar", "scipy binomtest", float(exact), stats.binomtest(b, b + c).pvalue, (b, c), 1e-10)
        else:
            assert exact == 1
        close("mcnemar", "statsmodels mcnemar", float(exact), float(their_mcnemar([[9, b], [c, 9]], exact=True).pvalue), (b, c), 1e-10)
        if b + c <= 14:
            spread = Counter(sum(signs) for signs in itertools.product((0, 1), repeat=b + c))
            total, seen = 2 ** (b + c), abs(2 * b - (b + c))
            extreme = sum(ways for k, ways in spread.items() if abs(2 * k - (b + c)) >= seen)
            close("mcnemar", "every sign pattern, exact", exact, Fraction(extreme, total), (b, c), 0)
            here = sum(ways for k, ways in spread.items() if abs(2 * k - (b + c)) == seen)
            mid = Fraction(extreme, total) - Fraction(here, 2 * total) if b + c else Fraction(1)
            close("mcnemar mid-p", "every sign pattern, exact", kit.mcnemar(b, c, mid=True).value, mid, (b, c), 0)
        if b + c:
            tail = stats.binom(b + c, 0.5)
            k = min(b, c)
            mid_p = 2 * (tail.cdf(k) - tail.pmf(k) / 2) if b != c else 1 - tail.pmf(k) / 2
            close("mcnemar mid-p", "scipy binom", float(kit.mcnemar(b, c, mid=True).value), min(1.0, mid_p), (b, c), 1e-10)


def score_polynomial(b: int, c: int, n: int, z: float) -> list[float]:
    """Every root d of (b-c-nd)^2 = z^2 n (2q + d(1-d)) with q free of its square root: a quartic in d."""
    d = np.polynomial.Polynomial([0.0, 1.0])
    linear, product = (2 * n - b + c) * d - b - c, 8 * n * c * d * (1 - d)
    # 2q = (sqrt(linear^2 + product) - linear) / 2n, so with left = (b-c-nd)^2/(z^2 n) - d(1-d): (2n left + linear)^2 = linear^2 + product
    left = (b - c - n * d) ** 2 / (z * z * n) - d * (1 - d)
    quartic = (2 * n * left + linear) ** 2 - linear**2 - product
    return [float(root.real) for root in quartic.roots() if abs(root.imag) < 1e-5]


def likelihood_score(b: int, c: int, n: int, d: float) -> float:
    """The score at d with the nuisance parameter found by maximising the trinomial likelihood numerically."""

    def loss(q: float) -> float:
        total = 0.0
        for k, p in ((b, q + d), (c, q), (n - b - c, 1 - 2 * q - d)):
            if k:
                total -= k * math.log(max(p, 1e-300))
        return total

    low, high = max(0.0, -d), (1 - d) / 2
    q = float(optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-14}).x) if high > low else low
    q = min((low, q, high), key=loss)
    variance = 2 * q + d - d * d
    return (b - c - n * d) / math.sqrt(n * variance) if variance > 0 else math.inf


def test_tango(close) -> None:
    tables = [(b, c, n) for n in (1, 2, 3, 5, 10, 20) for b in range(n + 1) for c in range(n + 1 - b)] + [
        (7, 3, 1000),
        (0, 1, 1000),
        (500, 500, 1000),
        (0, 0, 10**5),
    ]
    for (b, c, n), confidence in itertools.product(tables, (0.5, 0.95, 0.999)):
        z, estimate = z_of(confidence), (b - c) / n
        low, high = ends(kit.tango(b, c, n, confidence=confidence))
        assert -1 <= low < high <= 1
        if b == c == 0:
            edge = z * z / (n + z * z)
            close("tango", "z^2/(n+z^2), nobody discordant", (low, high), (-edge, edge), (n, confidence), 1e-9)
        roots = [*score_polynomial(b, c, n, z), -1.0, 1.0]
        for limit in (low, high):
            close("tango", "nearest root of the quartic", limit, min(roots, key=lambda r: abs(r - limit)), (b, c, n, confidence), 1e-8)
        if n <= 10 and not (b == n or c == n):
            for limit, sign in ((low, 1), (high, -1)):
                inside, outside = (limit + s * sign * 1e-4 for s in (1, -1))
                if (inside - estimate) * sign < 0:
                    assert sign * likelihood_score(b, c, n, inside) < z
                if -1 < outside < 1:
                    assert sign * likelihood_score(b, c, n, outside) > z
                close("tango", "score of the maximised likelihood brackets", 0.0, 0.0, (b, c, n))


def test_sign_flip(close) -> None:
    rng = random.Random(5)
    cases: list[list[Fraction]] = [
        [Fraction(0)],
        [Fraction(1)],
        [Fraction(0)] * 5,
        [Fraction(1)] * 9,
        [Fraction(1, 10)] * 3 + [Fraction(-3, 10)],
    ]
    cases += [[Fraction(rng.choice((-3, -1, 0, 1, 2)), rng.choice((1, 2, 10))) for _ in range(rng.randint(1, 10))] for _ in range(60)]
    for differences in cases:
        got = kit.sign_flip(differences).value
        observed = abs(sum(differences))
        sums = [
            abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(differences))
        ]
        close("sign_flip", "every sign pattern, exact", got, Fraction(sum(s >= observed for s in sums), len(sums)), differences, 0)
        if len(differences) > 1:
            test = stats.permutation_test((np.array(differences, float),), np.sum, permutation_type="samples", n_resamples=10_000)
            close("sign_flip", "scipy permutation_test", float(got), float(test.pvalue), differences, 1e-9)
    for b, c in itertools.product(range(12), repeat=2):
        if b + c:
            ones = [1] * b + [-1] * c + [0] * 3
            close("sign_flip", "statsmodels sign_test", float(kit.sign_flip(ones).value), float(sign_test(np.array(ones))[1]), (b, c), 1e-9)


def test_holm(close) -> None:
    rng = random.Random(9)
    cases = [[Fraction(0)], [Fraction(1)], [Fraction(1, 20)] * 4, []]
    cases += [[Fraction(rng.choice((0, 1, 3, 10, 40, 100)), 100) for _ in range(rng.randint(1, 7))] for _ in range(80)]
    for p_values in cases:
        got = kit.holm(p_values)
        everyone = range(len(p_values))
        closed = [
            max(
                min(Fraction(1), size * min(p_values[j] for j in some))
                for size in range(1, len(p_values) + 1)
                for some in itertools.combinations(everyone, size)
                if i in some
            )
            for i in everyone
        ]
        close("holm", "closed testing of every subset", [*got, Fraction(0)], [*closed, Fraction(0)], p_values, 0)
        if p_values:
            theirs = multipletests(np.array(p_values, float), method="holm")[1]
            close("holm", "statsmodels multipletests", list(map(float, got)), list(map(float, theirs)), p_values)


def test_paired_is_its_two_by_two_table(close) -> None:
    rng = np.random.default_rng(2)
    for n, repetitions in itertools.product((1, 2, 7, 30), (1, 3)):
        for _ in range(8):
            passes = rng.integers(0, repetitions + 1, (2, n))
            ours, theirs = (
                Instances(name, tuple(f"i{k}" for k in range(n)), row, repetitions - row, np.full(n, repetitions, np.int64))
                for name, row in zip("AB", passes, strict=True)
            )
            for k in range(1, repetitions + 1):
                got = kit.paired(ours, theirs, at_least=k)
                held = passes >= k
                table = [[int(((held[0] == a) & (held[1] == b)).sum()) for b in (True, False)] for a in (True, False)]
                close(
                    "paired",
                    "statsmodels mcnemar of the table",
                    float(got.test.value),
                    float(their_mcnemar(table, exact=True).pvalue),
                    table,
                    1e-10,
                )
                close("paired", "numpy mean of differences", float(got.difference), float(held[0].mean() - held[1].mean()), table, 1e-12)
                assert (len(got.repaired), len(got.regressed)) == (table[0][1], table[1][0])


# Stability, false promotion, power


def campaign_of(passes: np.ndarray, repetitions: int, clusters: tuple[str, ...] | None = None) -> Campaign:
    codes = np.where(np.arange(repetitions)[:, None, None] < passes[None], PASS, FAIL).astype(np.uint8)
    names = tuple("ABCD"[: len(passes)])
    return Campaign(names, tuple(f"i{k}" for k in range(passes.shape[1])), tuple(map(str, range(repetitions))), codes, None, clusters)


def test_selection_stability(close) -> None:
    rng = np.random.default_rng(4)
    worth = {fail_closed: lambda p, r: p == r, cell_mean: lambda p, r: p, passing_cells: lambda p, r: p}
    for candidates, n, repetitions, key, clustered in itertools.product(
        (2, 3), (2, 3, 4, 5), (1, 2), ((fail_closed,), (cell_mean,), (fail_closed, cell_mean)), (False, True)
    ):
        for same in (False, True):
            passes = np.zeros((candidates, n), np.int64) + 1 if same else rng.integers(0, repetitions + 1, (candidates, n))
            clusters = tuple("xyx"[k % 3] for k in range(n)) if clustered else None
            got = kit.selection_stability(campaign_of(passes, repetitions, clusters), key)
            if n < 2 or (clusters and len(set(clusters)) < 2):
                assert isinstance(got, Unavailable)
                continue
            units = (
                [[k for k in range(n) if clusters[k] == name] for name in sorted(set(clusters))] if clusters else [[k] for k in range(n)]
            )
            wins, ties, total = Counter(), 0, 0
            for drawn in itertools.product(units, repeat=len(units)):
                at = [k for unit in drawn for k in unit]
                keys = [tuple(int(sum(worth[r](passes[c, k], repetitions) for k in at)) for r in key) for c in range(candidates)]
                first = [c for c in range(candidates) if keys[c] == max(keys)]
                wins["ABCD"[first[0]]] += len(first) == 1
                ties += len(first) > 1
                total += 1
            assert not isinstance(got, Unavailable)
            close("selection_stability", "every resample, exact", [*(got.wins["ABCD"[c]] for c in range(candidates)), got.tie], [*(Fraction(wins["ABCD"[c]], total) for c in range(candidates)), Fraction(ties, total)], (passes, key), 0)  # fmt: skip
    passes = np.array([[2, 2, 1, 0, 0, 0], [2, 1, 1, 1, 1, 0]])
    exact = kit.selection_stability(campaign_of(passes, 2), (cell_mean,))
    draws = np.random.default_rng(1).integers(0, 6, (200_000, 6))
    sums = passes[:, draws].sum(axis=2)
    close("selection_stability", "200,000 numpy resamples", [float(exact.wins["A"]), float(exact.wins["B"])], [float((sums[0] > sums[1]).mean()), float((sums[1] > sums[0]).mean())], "fixture", 5e-3)  # fmt: skip


def test_false_promotion(close) -> None:
    for n, chance, challengers in itertools.product((1, 2, 6, 20), (Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)), (1, 2, 5)):
        got = kit.false_promotion(ReleaseRule("r", "o", "p", fail_closed), [chance] * n, 1, challengers, resamples=40_000)
        spread = stats.binom(n, float(chance))
        share = sum(spread.pmf(k) * (1 - spread.cdf(k) ** challengers) for k in range(n + 1))
        close("false_promotion", "scipy binom, order statistics", got.share, float(share), (n, chance, challengers), 0.012)
    for chances, repetitions, challengers in itertools.product(([Fraction(1, 2)], [Fraction(1, 3), Fraction(3, 4)]), (1, 2), (1, 2)):
        for rule in (
            ReleaseRule("r", "o", "p", fail_closed),
            ReleaseRule("r", "o", "p", at_least(1), floor=2),
            ReleaseRule("r", "o", "p", fail_closed, (cell_mean,), True),
        ):
            cells = [(c, i, r) for c in range(challengers + 1) for i in range(len(chances)) for r in range(repetitions)]
            alone = tied = Fraction(0)
            for words in itertools.product((0, 1), repeat=len(cells)):
                weight = math.prod(
                    (chances[i] if word else 1 - chances[i] for word, (_, i, _) in zip(words, cells, strict=True)), start=Fraction(1)
                )
                passes = [
                    [sum(w for w, cell in zip(words, cells, strict=True) if cell[:2] == (c, i)) for i in range(len(chances))]
                    for c in range(challengers + 1)
                ]
                first = [sum(p >= (1 if "at_least" in rule.reduction.__name__ else repetitions) for p in row) for row in passes]
                keys = [(f, sum(row)) if rule.tie_breakers else (f,) for f, row in zip(first, passes, strict=True)]
                best = max(keys[:-1])
                promoted = best > keys[-1] if rule.tie_breakers_may_promote else best[0] > keys[-1][0]
                if promoted and best[0] >= (rule.floor or 0) and best[0] > 0:
                    alone, tied = (alone + weight, tied) if keys[:-1].count(best) == 1 else (alone, tied + weight)
            got = kit.false_promotion(rule, chances, repetitions, challengers, resamples=40_000)
            close(
                "false_promotion",
                "every outcome of every cell",
                (got.promoted, got.tied),
                (float(alone), float(tied)),
                (chances, repetitions, challengers),
                0.012,
            )


def test_pooled_chances_are_the_shares_over_all_candidates(close) -> None:
    for passes, repetitions in ((np.array([[2, 0, 1], [2, 0, 0]]), 2), (np.array([[1]]), 1)):
        got = kit.pooled_chances(campaign_of(passes, repetitions))
        close("pooled_chances", "numpy mean", [float(x) for x in got], (passes.mean(axis=0) / repetitions).tolist(), passes, 1e-12)
        close(
            "pooled_chances",
            "Fractions",
            list(got),
            [Fraction(int(column.sum()), len(passes) * repetitions) for column in passes.T],
            passes,
            0,
        )


def test_mcnemar_power(close) -> None:
    chances = [(0.0, 0.0), (0.5, 0.0), (0.0, 1.0), (1.0, 0.0), (0.25, 0.25), (0.5, 0.5), (0.3, 0.1), (0.04, 0.02)]
    for (p10, p01), n, alpha, mid in itertools.product(chances, (1, 2, 5, 6, 13, 24), (0.05, 0.0625, 0.5, 0.001), (False, True)):
        exact, drawn = Fraction(0), 0.0
        for b in range(n + 1):
            for c in range(n + 1 - b):
                rest = n - b - c
                tail = [Fraction(math.comb(b + c, k), 2 ** (b + c)) for k in range(b + c + 1)]
                extreme = sum(t for k, t in enumerate(tail) if abs(2 * k - b - c) >= abs(b - c))
                here = sum(t for k, t in enumerate(tail) if abs(2 * k - b - c) == abs(b - c))
                p = extreme - here / 2 if mid and b + c else extreme
                if b + c and p <= Fraction(str(alpha)):
                    ways = math.comb(n, b) * math.comb(n - b, c)
                    exact += ways * Fraction(p10) ** b * Fraction(p01) ** c * (1 - Fraction(p10) - Fraction(p01)) ** rest
                    drawn += float(stats.multinomial.pmf([b, c, rest], n, [p10, p01, 1 - p10 - p01]))
        got = kit.mcnemar_power(p10, p01, n, alpha=alpha, mid=mid)
        close("mcnemar_power", "every table in Fractions", got, float(exact), (p10, p01, n, alpha, mid), 1e-10)
        close("mcnemar_power", "scipy multinomial", got, drawn, (p10, p01, n, alpha, mid), 1e-10)


def test_instances_needed(close) -> None:
    for difference, between, within, repetitions, alpha, power in itertools.product(
        (0.03, -0.1, 0.5, 1.0), (0.0, 1 / 9, 0.5), (0.0, 1 / 3), (1, 2, 10), (0.05, 0.001, 0.5), (0.5, 0.8, 0.99)
    ):
        variance = between + within / repetitions
        got = kit.instances_needed(difference, between, within, repetitions, alpha=alpha, power=power)
        if not variance:
            assert got == 0
            continue
        exact = variance * ((stats.norm.isf(alpha / 2) + stats.norm.ppf(power)) / difference) ** 2
        close("instances_needed", "scipy norm", got, math.ceil(exact - 1e-9), (difference, variance, alpha, power), 0)
        theirs = normal_sample_size_one_tail(abs(difference), power, alpha / 2, std_null=math.sqrt(variance))
        close("instances_needed", "statsmodels normal_sample_size", got, math.ceil(theirs - 1e-9), (difference, variance, alpha, power), 0)
        if power >= 0.8 and alpha < 0.5 and got > 4:  # its solver does not reach fewer
            with np.errstate(invalid="ignore"):
                n = NormalIndPower(ddof=0).solve_power(
                    abs(difference) / math.sqrt(variance), None, alpha / 2, power, ratio=0, alternative="larger"
                )
            close(
                "instances_needed", "statsmodels NormalIndPower", got, math.ceil(float(n) - 1e-6), (difference, variance, alpha, power), 0
            )


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan, math.inf])
def test_a_confidence_that_is_none_is_refused_by_every_interval(confidence: float) -> None:
    tally = Tally.of("t", {"a": (1, 2), "b": (2, 2)})
    half = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    for interval in (
        lambda: kit.wilson(1, 2, confidence=confidence),
        lambda: kit.clopper_pearson(1, 2, confidence=confidence),
        lambda: kit.clustered_wilson([1, 0], [2, 2], confidence=confidence),
        lambda: kit.mover(tally, half, confidence=confidence),
        lambda: kit.mover_difference(tally, tally, half, confidence=confidence),
        lambda: kit.tango(1, 0, 2, confidence=confidence),
        lambda: kit.cr2_difference([1, 0, 0], ["x", "y", "z"], confidence=confidence),
    ):
        with pytest.raises(InputError):
            interval()


@pytest.mark.parametrize("confidence", [1 - 2**-52, 1 - 2**-53, 2**-60])
def test_a_confidence_next_to_none_or_all_has_an_answer_or_a_refusal(confidence: float) -> None:
    for interval in (
        lambda: kit.wilson(1, 2, confidence=confidence),
        lambda: kit.tango(1, 0, 2, confidence=confidence),
        lambda: kit.cr2_difference([1, 0, 0], ["x", "y", "z"], confidence=confidence),
        lambda: kit.clustered_wilson([1, 0, 1], [2, 2, 2], confidence=confidence),
    ):
        try:
            low, high = ends(interval())
        except InputError:
            continue
        assert low <= high


@pytest.mark.parametrize(("alpha", "power"), [(0, 0.8), (1, 0.8), (0.05, 0), (0.05, 1), (math.nan, 0.8), (0.05, math.nan), (2, 0.8)])
def test_a_level_or_a_power_that_is_none_is_refused(alpha: float, power: float) -> None:
    with pytest.raises(InputError):
        kit.instances_needed(0.1, 0.1, 0.1, 2, alpha=alpha, power=power)
    if not 0 < alpha < 1:
        with pytest.raises(InputError):
            kit.mcnemar_power(0.3, 0.1, 10, alpha=alpha)


def test_a_small_level_is_a_level() -> None:
    assert kit.mcnemar_power(0.9, 0.0, 30, alpha=1e-5) == pytest.approx(kit.mcnemar_power(0.9, 0.0, 30, alpha=0.00001))
    assert kit.mcnemar_power(0.9, 0.0, 30, alpha=1e-5) > 0.9
