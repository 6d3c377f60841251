"""What the figures claim, where their marks stand, and that no two labels overlap. No pixel is compared."""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import itertools
import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from evalkit import (
    CoverageError,
    InputError,
    MixError,
    Reference,
    RuleError,
    Tally,
    cell_mean,
    decompose,
    draw,
    fail_closed,
    lowest,
    mean_score,
    observed_mix,
    observed_rate,
    pass_at,
    pass_hat,
    read_campaign,
    read_reference,
    read_tallies,
    standardise,
    unit,
)  # fmt: skip
from evalkit.campaign import CODE, Campaign, Column
from evalkit.uncertainty import wilson

LONG = bool(os.environ.get("EVALKIT_LONG"))  # `make test-long` draws the whole grid of sizes; the default keeps its extremes

HOSTILE = [
    "$\\frac{1}{2}$ <script>alert('x')</script>",
    "שלום עולם 12",
    "候选人🙂 a\u202eb",
    "x" * 250 + "MID" + "y" * 247,
    "a\nb\tc & \"quoted\" 'twice'",
    "**md** _x_ | `y` {z} %s $",
    "e\u0301\u0301 \ud800 \x1b[31m",
    "العربية",
    "--><svg onload=alert(1)>",
    "",
    " ",
    "ﬁ 𝕏 \U0001f469\u200d\U0001f52c",
    "W" * 60,
]


def campaign(candidates, instances, repetitions, *, seed=0, missing=0, skill=None, names=None, ids=None, columns=None):
    """A random grid; the first two candidates are complete, each other one lacks ``missing`` cells."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(0.6, 0.6, (1, candidates, instances)) if skill is None else skill
    codes = np.where(rng.random((repetitions, candidates, instances)) < chance, CODE["pass"], CODE["fail"]).astype(np.uint8)
    for c in range(2, candidates):
        for n in range(missing):
            codes[n % repetitions, c, (n * 7 + c) % instances] = (0, 3, 4, 5, 6)[n % 5]
    return Campaign(
        tuple(names or (f"candidate-{n}" for n in range(candidates))),
        tuple(ids or (f"i{n + 1}" for n in range(instances))),
        tuple(str(n) for n in range(repetitions)),
        codes,
        columns=columns or {},
    )


def sizes(*always, more):
    return [*always, *(more if LONG else ())]


def tallies(groups, seed=0, extreme=None):
    rng = random.Random(seed)

    def one(period):
        counts = {}
        for group in groups:
            n = rng.choice([1, 7, 40, 300, 5000])
            counts[group] = (rng.randint(0, n) if extreme is None else n * extreme, n)
        return Tally.of(period, counts)

    weights = [rng.randint(0, 5) for _ in groups]
    weights[0] += 1
    reference = Reference("r", "rule", {g: Fraction(w, sum(weights)) for g, w in zip(groups, weights, strict=True)}, "v1")
    return one("before"), one("after"), reference


def page(function, *args):
    with draw._style():
        return function(*args)


def inversion_page(data, rule=fail_closed, picker=cell_mean, candidates=None, fails=()):
    return page(draw._inversion, data, rule, picker, candidates, fails)


def dial_page(data, candidates=None):
    return page(draw._dial, data, candidates, ())


def mix_page(function, before, after, reference):
    return page(function, draw._periods(before, after, reference), reference)


def labels(drawn):
    """Each text with its box in pixels, as the Agg renderer sets it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(drawn.figure).get_renderer()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in drawn.axes.texts if text.get_text().strip()]


def clashes(drawn):
    """Pairs of texts whose boxes overlap, and texts that leave the page."""
    named = labels(drawn)
    width, height = drawn.figure.get_size_inches() * 96
    x0, y0, x1, y1 = np.array([box.extents for _, box in named]).T
    deep = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    high = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    pairs = np.argwhere(np.triu((deep > 0.5) & (high > 0.5), 1)).tolist()
    outside = np.flatnonzero((x0 < 0) | (y0 < 0) | (x1 > width) | (y1 > height)).tolist()
    return [(named[a][0], named[b][0]) for a, b in pairs] + [(named[a][0], "the edge") for a in outside]


def rectangles(drawn, colour, hatched=None):
    """The rectangles of patches with this edge or fill: (left, top, width, height)."""
    from matplotlib.colors import to_hex

    found = []
    for patch in drawn.axes.patches:
        if colour.lower() in (to_hex(patch.get_facecolor(), True)[:7], to_hex(patch.get_edgecolor(), True)[:7]) and hasattr(
            patch, "get_path"
        ):
            if hatched is not None and bool(patch.get_hatch()) != hatched:
                continue
            corners = patch.get_path().vertices.reshape(-1, 5, 2) if len(patch.get_path().vertices) % 5 == 0 else []
            found += [tuple(np.round([*c.min(axis=0), *np.ptp(c, axis=0)], 6).tolist()) for c in corners]
    return found


def words(drawn):
    return [text.get_text() for text in drawn.axes.texts]


def published_pictures():
    """Every figure of the published results once; run in a fresh process too."""
    tallies, reference = list(read_tallies().values()), read_reference()
    rows = [draw.Estimate(f"n{n}", f"{n} of 6", Fraction(n, 6), *ends) for n, ends in enumerate([(0.0, 0.39), (0.03, 0.564)])]
    data = read_campaign()
    return [draw.inversion(data), draw.dial(data), draw.mix_lines(*tallies, reference), draw.areas(*tallies, reference),
            draw.intervals(rows, title="t", unit="u")]  # fmt: skip


published = cache(published_pictures)


# --- what the published results look like -----------------------------------------------------------------------------


def test_the_inversion_says_who_wins_under_either_count_from_exact_counts():
    picture = published()[0]
    assert picture.title == "Count passing cells and MERGE wins; count resolved instances and CLAUDE wins"
    assert picture.alt == (
        f"{picture.title}. BASELINE: 2 of 12 cells (0.167), 1 of 6 instances; CLAUDE: 5 of 12 cells (0.417), 2 of 6 instances; "
        "MERGE: 6 of 12 cells (0.500), 1 of 6 instances."
    )


def test_the_bars_of_the_inversion_are_as_long_as_the_shares():
    drawn = inversion_page(read_campaign(), candidates=["CLAUDE", "MERGE"])
    whole = {round(w, 6) for _, _, w, h in rectangles(drawn, "#C8C8C8") if h == 24}
    assert len(whole) == 1
    (track,) = whole
    for colour, shares in ((draw._BLUE, [5 / 12, 2 / 6]), (draw._VERMILLION, [6 / 12, 1 / 6])):
        bars = sorted((x, w / track) for x, _, w, h in rectangles(drawn, colour) if h == 24)
        assert [w for _, w in bars] == pytest.approx(shares)


def test_the_chosen_bar_is_solid_and_the_other_hatched_so_that_greyscale_tells_them_apart():
    drawn = inversion_page(read_campaign(), candidates=["CLAUDE", "MERGE"])
    assert [len([r for r in rectangles(drawn, c, h) if r[3] == 24]) for c in (draw._BLUE, draw._VERMILLION) for h in (False, True)] == [
        1
    ] * 4
    assert words(drawn).count("chosen") == 2


def test_resolved_instances_are_outlined_and_nothing_else():
    drawn = inversion_page(read_campaign(), candidates=["CLAUDE", "MERGE"])
    outlines = [patch for patch in drawn.axes.patches if patch.get_linewidth() > 1.9]
    assert [len(patch.get_path().vertices) // 5 for patch in outlines] == [2, 1]


def test_the_grid_shows_every_cell_as_recorded():
    data = campaign(3, 6, 2, missing=3)
    drawn = inversion_page(data)
    letters = [len(line.get_xdata()) for line in drawn.axes.lines if not isinstance(line.get_marker(), str)]
    assert sum(letters) == data.codes.size
    assert "t timeout (1)" in " ".join(words(drawn))


def test_the_dial_runs_from_the_cell_mean_to_the_fail_closed_share():
    picture = published()[1]
    assert picture.title == "MERGE leads at k = 1, CLAUDE leads at k = 2"
    assert "CLAUDE: k = 1 5 of 12 cells (0.417), k = 2 2 of 6 instances" in picture.alt


def test_the_mix_lines_say_the_reversal_with_both_rates_and_both_effects():
    before, after = read_tallies().values()
    reference = read_reference()
    picture = published()[2]
    assert picture.title == "Every group falls, yet the observed rate rises from 45% to 75%"
    assert (
        "candidate: complex 30 of 100 (30%), routine 720 of 900 (80%); observed 750 of 1000 (75%), at the reference mix 35%." in picture.alt
    )
    shown = words(mix_page(draw._lines, before, after, reference))
    assert {"rates −10", "mix +40", "observed 45%", "standardised 35%", "observed 75%", "all complex", "all routine"} <= set(shown)
    split = decompose(before, after)
    assert (split.rate_effect, split.mix_effect) == (Fraction(-1, 10), Fraction(2, 5))  # here the arrows are also Kitagawa's split


def test_the_areas_say_that_the_candidate_is_lower_at_the_reference_mix():
    title = published()[3].title
    assert title == "candidate passes 35% at the reference mix, 75% at its own; baseline 45% and 45%"


# --- numbers and positions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instances", "repetitions", "missing"), sizes((200, 4, 0), (13, 1, 0), (40, 3, 9), more=[(50, 10, 0)]))
def test_the_filled_area_of_a_strip_is_the_share_of_passing_cells_and_the_outline_the_resolved_share(instances, repetitions, missing):
    data = campaign(4, instances, repetitions, seed=instances, missing=missing)
    drawn = inversion_page(data)
    frames = [r for r in rectangles(drawn, "#9A9A9A") if r[3] == 64]
    assert len(frames) == 4
    for n, name in enumerate(data.candidates):
        left, top, wide, tall = frames[n]
        inside = [r for patch in (draw._BLUE, draw._VERMILLION, draw._GREY) for r in rectangles(drawn, patch) if top - 1 <= r[1] <= top + tall
                  and left - 1 <= r[0] < left + wide]  # fmt: skip
        passed = int((data.codes[:, n] == CODE["pass"]).sum())
        assert sum(w * h for _, _, w, h in inside) / (wide * tall) == pytest.approx(passed / data.codes[:, n].size), name
        whole = sum(all(cell == CODE["pass"] for cell in column) for column in data.codes[:, n].T.tolist())
        outline = [w for x, y, w, h in rectangles(drawn, draw._INK) if (y, h) == (top, tall)]
        assert sum(outline) / wide == pytest.approx(whole / instances)


@pytest.mark.parametrize("repetitions", sizes(2, 12, more=[5]))
def test_the_dial_stands_at_pass_hat_for_every_k(repetitions):
    data = campaign(5, 20, repetitions, seed=3)
    drawn = dial_page(data)
    ends = next(list(line.get_xdata()) for line in drawn.axes.lines if line.get_color() == "#C8C8C8")
    curves = [line for line in drawn.axes.lines if len(line.get_xdata()) == repetitions and line.get_linewidth() in (2.6 * 0.75, 1.4 * 0.75)
              and line.get_marker() == "None" and line.get_color() != draw._INK
              and [*line.get_xdata()][:: repetitions - 1] == pytest.approx(ends)]  # fmt: skip
    grid = sorted({line.get_ydata()[0] for line in drawn.axes.lines if line.get_color() == "#C8C8C8"})
    floor = max(line.get_ydata()[1] for line in drawn.axes.lines if len(line.get_xdata()) == 2 and line.get_color() == draw._GREY)
    assert len(curves) == 5
    ceiling = Fraction(max(int(text[:-1]) for text in words(drawn) if re.fullmatch(r"\d+%", text)), 100)
    for curve, name in zip(curves, data.candidates, strict=True):
        shares = [(floor - y) / (floor - grid[0]) * float(ceiling) for y in curve.get_ydata()]
        assert shares == pytest.approx([float(pass_hat(k)(data.of(name))) for k in range(1, repetitions + 1)])


def test_more_than_four_candidates_are_two_rankings_whose_slots_follow_the_places():
    data = campaign(9, 60, 3, seed=8)
    drawn = inversion_page(data)
    lines = [line for line in drawn.axes.lines if list(line.get_xdata()) == [300.0, 500.0]]
    means = [cell_mean(data.of(name)) for name in data.candidates]
    resolved = [fail_closed(data.of(name)) for name in data.candidates]
    assert len(lines) == 9
    for a, b in itertools.combinations(range(9), 2):
        for at, values in ((0, means), (1, resolved)):
            ya, yb = lines[a].get_ydata()[at], lines[b].get_ydata()[at]
            assert ya != yb
            assert values[a] == values[b] or (ya < yb) == (values[a] > values[b])


def test_the_mix_lines_end_at_the_group_rates_and_the_marks_stand_on_the_lines():
    before = Tally.of("before", {"plain": (63, 70), "hard": (9, 30)})
    after = Tally.of("after", {"plain": (40, 50), "hard": (15, 60)})
    reference = Reference("r", "g", {"plain": Fraction(1, 3), "hard": Fraction(2, 3)}, "v")
    drawn = mix_page(draw._lines, before, after, reference)
    (blue,) = [
        line for line in drawn.axes.lines if line.get_color() == draw._BLUE and line.get_linewidth() > 1.9 and len(line.get_xdata()) == 2
    ]
    (orange,) = [
        line
        for line in drawn.axes.lines
        if line.get_color() == draw._VERMILLION and line.get_linewidth() > 1.9 and len(line.get_xdata()) == 2
    ]
    assert (blue.get_linestyle(), orange.get_linestyle()) == ("-", "--")
    circles = [line for line in drawn.axes.lines if line.get_marker() == "o"]
    squares = [line for line in drawn.axes.lines if line.get_marker() == "s"]
    for line, marks, tally in ((blue, circles, before), (orange, squares, after)):
        (x0, x1), (y0, y1) = line.get_xdata(), line.get_ydata()
        assert len(marks) == 2
        for mark in marks:
            share = (mark.get_xdata()[0] - x0) / (x1 - x0)
            assert mark.get_ydata()[0] == pytest.approx(y0 + share * (y1 - y0))
        hollow = next(mark for mark in marks if mark.get_markerfacecolor() == "white")
        right = next(g for g in tally.groups if f"all {g}" == words(drawn)[[w.startswith("all ") for w in words(drawn)].index(True)])
        assert (hollow.get_xdata()[0] - x0) / (x1 - x0) == pytest.approx(1 - float(reference.weights[right]))


@pytest.mark.parametrize("k", sizes(2, 12, more=[1, 3, 4]))
def test_the_columns_of_an_area_plot_cover_the_rate_that_its_dashed_line_shows(k):
    before, after, reference = tallies([f"group {n}" for n in range(k)], seed=k)
    drawn = mix_page(draw._areas, before, after, reference)
    expected = [observed_rate(before), observed_rate(after)]
    expected += [standardise(before, reference)] if observed_mix(before) != dict(reference.weights) else []
    expected += [standardise(after, reference)]
    dashed = [line for line in drawn.axes.lines if line.get_linewidth() == 2.4 * 0.75]
    assert len(dashed) == len(expected)
    columns = rectangles(drawn, draw._BLUE) + rectangles(drawn, draw._VERMILLION)
    floors = sorted({line.get_ydata()[0] for line in drawn.axes.lines if line.get_linewidth() == 1.2 * 0.75})
    for line, rate in zip(dashed, expected, strict=True):
        left, right = line.get_xdata()[0] + 4, line.get_xdata()[1] - 4
        floor = next(y for y in floors if y >= line.get_ydata()[0] - 1e-6)
        inside = [w * h for x, y, w, h in columns if left - 1e-6 <= x < right and abs(y + h - floor) < 1e-6]
        assert sum(inside) / ((right - left) * 230) == pytest.approx(float(rate))
        assert (floor - line.get_ydata()[0]) / 230 == pytest.approx(float(rate))


def test_a_dumbbell_mark_has_the_area_of_its_groups_share():
    groups = ["a", "b", "c"]
    before = Tally.of("before", dict(zip(groups, [(10, 100), (150, 400), (400, 500)], strict=True)))
    after = Tally.of("after", dict(zip(groups, [(20, 400), (100, 400), (100, 200)], strict=True)))
    drawn = mix_page(draw._dumbbells, before, after, Reference("r", "g", observed_mix(before), "v"))
    rows = sorted({line.get_ydata()[0] for line in drawn.axes.lines if line.get_marker() in ("o", "s")})
    for y, group in zip(rows, groups, strict=False):
        for marker, tally in (("o", before), ("s", after)):
            (mark,) = [line for line in drawn.axes.lines if line.get_marker() == marker and line.get_ydata()[0] == y]
            assert (mark.get_markersize() / 0.75 / 26) ** 2 == pytest.approx(float(observed_mix(tally)[group]))


def test_an_interval_runs_from_low_to_high_with_its_dot_at_the_exact_share_and_the_open_bar_over_what_is_missing():
    rows = [
        draw.Estimate("A", "2 of 6", Fraction(1, 3), 0.25, 0.75, missing=(Fraction(1, 3), Fraction(1, 2))),
        draw.Estimate("B", "0 of 6", 0, None, None, "unavailable: one cluster"),
        draw.Estimate("C", "-1 of 6", Fraction(-1, 6), -0.5, 0.25),
    ]
    for difference in (False, True):
        kept = rows if difference else rows[:2]
        drawn = page(draw._intervals, kept, "t", "u", -1 if difference else 0)
        ticks = sorted({line.get_xdata()[0] for line in drawn.axes.lines if line.get_color() in ("#C8C8C8", draw._INK)})
        zero, one = ticks[2 if difference else 0], ticks[-1]
        assert len(ticks) == 5

        def share(x, zero=zero, one=one):
            return (x - zero) / (one - zero)

        dots = [share(line.get_xdata()[0]) for line in drawn.axes.lines if line.get_marker() == "o"]
        assert dots == pytest.approx([float(row.point) for row in kept])
        lines = [[share(x) for x in line.get_xdata()] for line in drawn.axes.lines if line.get_marker() == "|"]
        assert lines == [pytest.approx(list(ends)) for ends in ((0.25, 0.75), (-0.5, 0.25))[: len(kept) - 1]]
        ((left, _, wide, _),) = rectangles(drawn, draw._GREY)
        assert [share(left), share(left + wide)] == pytest.approx([1 / 3, 1 / 2])


# --- claims -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12 if LONG else 5))
def test_the_title_names_exactly_the_candidates_that_have_the_most(seed):
    data = campaign(3, 5, 2, seed=seed)
    passed = {name: int((data.codes[:, c] == 1).sum()) for c, name in enumerate(data.candidates)}
    whole = {name: int((data.codes[:, c] == 1).all(axis=0).sum()) for c, name in enumerate(data.candidates)}
    title = inversion_page(data).title
    best = [{name for name, n in counts.items() if n == max(counts.values())} for counts in (passed, whole)]
    if best[0] == best[1]:
        assert "either way" in title
        assert {name for name in data.candidates if name in title} == best[0]
    else:
        parts = title.split(";")
        assert [{name for name in data.candidates if name in part} for part in parts] == best
    assert ("tie" in title) == any(len(names) > 1 for names in best)


def test_a_tie_chooses_nobody():
    data = campaign(2, 6, 2, skill=1.0)
    assert inversion_page(data).title == "Count passing cells or resolved instances: either way candidate-0 and candidate-1 tie"
    shown = words(inversion_page(data))
    assert "chosen" not in shown
    assert shown.count("tied first") == 4


def test_a_lone_candidate_is_described_and_not_called_chosen():
    drawn = inversion_page(read_campaign(), candidates=["CLAUDE"])
    assert drawn.title == "CLAUDE: 5 of 12 (passing cells), 2 of 6 (resolved instances)"
    assert "chosen" not in words(drawn)


def test_in_a_tie_the_picked_candidate_keeps_a_look_of_its_own():
    assert [draw._colour(name, ["M"], ["B", "M"]) for name in "BMX"] == [draw._BLUE, draw._VERMILLION, draw._GREY]
    assert [draw._colour(name, ["A", "B"], ["A"]) for name in "AB"] == [draw._BLUE, draw._VERMILLION]
    title = inversion_page(read_campaign(), candidates=["BASELINE", "MERGE"]).title
    assert title == "Count passing cells and MERGE wins; count resolved instances: BASELINE and MERGE tie"


def test_two_rules_of_a_reader_that_share_a_unit_are_told_apart():
    @unit("instances")
    def any_pass(instances):
        return int((instances.passed > 0).sum())

    @unit("instances")
    def first_half(instances):
        return int((instances.passed[:3] == 2).sum())

    title = inversion_page(read_campaign(), any_pass, first_half).title
    assert title == "Count instances by first_half and CLAUDE wins; count instances by any_pass and MERGE wins"


def test_an_incomplete_candidate_is_shown_without_a_bar_or_a_place():
    data = campaign(3, 6, 2, missing=1)
    drawn = inversion_page(data)
    assert words(drawn).count("incomplete") == 2
    assert words(drawn).count("11 of 12") == 2
    assert len([r for r in rectangles(drawn, "#C8C8C8") if r[3] == 24]) == 4
    assert "candidate-2: not ranked, 11 of 12 cells (1 absent)" in drawn.alt
    assert "(2 of 3 candidates are complete)" in drawn.title


def test_a_missing_cell_is_counted_as_fail_only_where_the_rule_says_so():
    data = campaign(3, 6, 2, missing=1)
    told = draw.inversion(data, count_as_fail=["absent"]).alt
    assert "not ranked" not in told
    assert "Counted as fail by the rule: a absent (1)." in " ".join(words(inversion_page(data, fails=["absent"])))


def test_an_incomplete_candidate_is_named_but_not_drawn_on_the_dial():
    picture = dial_page(campaign(3, 6, 2, missing=2))
    assert "Not drawn, incomplete: candidate-2, 10 of 12 cells (1 absent, 1 error)." in picture.alt


def test_intervals_tell_every_count_and_why_one_has_no_interval():
    ends = wilson(2, 6)
    rows = [
        ("CLAUDE", "2 of 6", Fraction(1, 3), ends.low, ends.high, "", (Fraction(1, 3), Fraction(1, 2))),
        ("NEW", "11 of 12 cells", None, None, None, "incomplete"),
    ]
    assert draw.intervals(rows, title="Six are few", unit="share of resolved instances").alt == (
        "Six are few. share of resolved instances: CLAUDE: 2 of 6, 0.333 (0.097 to 0.700), worst to best case: 0.333 to 0.500; "
        "NEW: 11 of 12 cells, incomplete."
    )
    difference = [("CLAUDE", "1 repaired", Fraction(1, 6), -0.25, 0.5), ("MERGE", "1 regressed", Fraction(-1, 6), -0.5, 0.25)]
    assert "+0.167 (−0.250 to +0.500); MERGE: 1 regressed, −0.167" in draw.intervals(difference, title="t", unit="u", difference=True).alt


def test_with_one_repetition_the_dial_says_that_it_cannot_show_instability():
    drawn = dial_page(campaign(13, 50, 1))
    assert "one repetition cannot show instability" in drawn.title
    assert sum(text.endswith(" of 50") for text in words(drawn)) == 13
    assert clashes(drawn) == []


def test_nobody_complete_chooses_nobody_and_refuses_a_dial():
    codes = np.zeros((2, 2, 3), np.uint8)
    data = Campaign(("A", "B"), ("x", "y", "z"), ("0", "1"), codes)
    assert draw.inversion(data).title == "No candidate is complete: nobody is chosen"
    with pytest.raises(CoverageError, match="no complete candidate: 'A' has 0 of 6 cells"):
        draw.dial(data)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_the_mix_title_never_claims_what_the_rates_do_not_say(k, seed):
    before, after, reference = tallies([f"g{n}" for n in range(k)], seed=seed)
    title = draw._mix_title(*draw._periods(before, after, reference))
    change = observed_rate(after) - observed_rate(before)
    rates = [
        Fraction(a, b) - Fraction(c, d) for a, b, c, d in zip(after.passed, after.assessed, before.passed, before.assessed, strict=True)
    ]
    if "Every group falls" in title:
        assert change > 0
        assert max(rates) < 0
    if "Every group rises" in title:
        assert change < 0
        assert min(rates) > 0
    held = standardise(after, reference) - standardise(before, reference)
    if ", but " in title:
        assert (change > 0) - (change < 0) != (held > 0) - (held < 0)
    verb = "rises" if change > 0 else "falls" if change < 0 else "stays"
    assert re.search(rf"rate {verb} ", title)


def test_other_reductions_get_their_own_scale_and_the_higher_value_the_choice():
    numbers = Column(np.arange(24, dtype=np.int64).reshape(2, 2, 6) + 1, 4, np.ones((2, 2, 6), bool))
    data = campaign(2, 6, 2, columns={"cost": numbers, "score": numbers})
    assert inversion_page(data, lowest("cost"), mean_score).title == (
        "Count score points and candidate-1 wins; count the lowest total cost and candidate-0 wins"
    )
    for rule, picker in sizes((lowest("cost"), pass_at(2)), more=[(mean_score, pass_hat(1))]):
        assert clashes(inversion_page(data, rule, picker)) == []


# --- legibility -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("candidates", "instances"), sizes((2, 6), (4, 200), (13, 200), more=[(4, 12), (3, 13), (5, 6)]))
def test_no_labels_overlap_in_an_inversion_of_any_size(candidates, instances):
    for repetitions, missing in sizes((4, 5), more=[(1, 0)]):
        drawn = inversion_page(campaign(candidates, instances, repetitions, missing=missing, seed=instances))
        assert clashes(drawn) == []
        assert drawn.width <= 960


@pytest.mark.parametrize(("candidates", "repetitions"), sizes((1, 1), (2, 2), (13, 1), (13, 48), more=[(1, 4), (6, 7), (9, 3), (13, 10)]))
def test_no_labels_overlap_on_a_dial_of_any_size(candidates, repetitions):
    for skill in (0.0, 1.0, None) if candidates in (2, 9) else (None,):
        assert clashes(dial_page(campaign(candidates, 10, repetitions, skill=skill))) == []


@pytest.mark.parametrize(
    ("form", "k"),
    sizes((draw._lines, 2), (draw._dumbbells, 12), (draw._areas, 3), (draw._areas, 12),
          more=[*((draw._dumbbells, k) for k in (1, 2, 3, 4)), *((draw._areas, k) for k in (1, 2, 4))]),
)  # fmt: skip
def test_no_labels_overlap_at_any_mix(form, k):
    for seed, extreme in sizes((0, None), (3, 1), more=[(1, None), (2, 0)]):
        assert clashes(mix_page(form, *tallies([f"g{n}" for n in range(k)], seed=seed, extreme=extreme))) == []


@pytest.mark.parametrize("missing", [0, 9])
def test_no_count_runs_into_the_bar_beside_it(missing):
    drawn = inversion_page(campaign(4, 200, 48, missing=missing))
    bars = [r for r in rectangles(drawn, "#C8C8C8") if r[3] == 24]
    for text, box in labels(drawn):
        assert not [b for b in bars if box.x0 < b[0] + b[2] and b[0] - 4 < box.x1 and abs((drawn.figure.get_size_inches()[1] * 96 - (box.y0 + box.y1) / 2) - (b[1] + 12)) < 12], text  # fmt: skip


def test_a_rate_that_the_mix_does_not_change_gets_no_arrow():
    for rate in (0, 1):
        before, after = (Tally.of(name, {"plain": (rate * n, n), "hard": (rate * 40, 40)}) for name, n in (("before", 10), ("after", 90)))
        drawn = mix_page(draw._lines, before, after, Reference("r", "g", {"plain": Fraction(1, 2), "hard": Fraction(1, 2)}, "v"))
        assert [word for word in words(drawn) if word.startswith(("mix ", "rates "))] == []
        assert clashes(drawn) == []


def test_long_group_names_are_told_in_a_table_not_cut_under_their_columns():
    groups = [f"requests of kind {n} for the help desk" for n in range(3)]
    assert set(groups) <= set(words(mix_page(draw._areas, *tallies(groups, seed=2))))
    assert "routine" in words(mix_page(draw._areas, *tallies(["routine", "complex"], seed=2)))


def test_a_name_is_whole_on_the_dial_wherever_there_is_room():
    assert words(dial_page(campaign(13, 120, 8))).count("candidate-12") == 2


def test_two_rates_side_by_side_have_the_same_decimals_and_differ_where_they_do():
    assert draw._pair(Fraction(353, 560), Fraction(17, 25)) == ("63.0%", "68.0%")
    assert draw._pair(Fraction(1, 3), Fraction(3334, 10000)) == ("33.33%", "33.34%")
    assert draw._pair(Fraction(1, 4), Fraction(3, 4)) == ("25%", "75%")


def test_labels_of_mix_lines_stay_apart_where_the_periods_nearly_agree():
    for n in sizes(1, more=[0, 20]):
        before = Tally.of("before", {"plain": (900, 1000), "hard": (400, 1000)})
        after = Tally.of("after", {"plain": (900 + n, 1000), "hard": (400 - n, 1000 + n)})
        for weight in sizes(Fraction(0), Fraction(501, 1000), more=[Fraction(1)]):
            drawn = mix_page(draw._lines, before, after, Reference("r", "g", {"plain": weight, "hard": 1 - weight}, "v"))
            assert clashes(drawn) == []


def test_hostile_names_are_drawn_as_text_without_overlap_or_warning():
    few, many = (campaign(n, 12, 2, names=HOSTILE[:n], ids=HOSTILE[:12]) for n in (4, 13))
    for drawn in (inversion_page(few), inversion_page(many), dial_page(many)):
        assert clashes(drawn) == []
    for form, k in sizes((draw._lines, 2), (draw._dumbbells, 12), (draw._areas, 3), more=[(draw._dumbbells, 3), (draw._areas, 12)]):
        assert clashes(mix_page(form, *tallies(HOSTILE[:k], seed=k))) == []


def test_no_labels_overlap_in_a_figure_of_intervals():
    note = "unavailable: the clusters leave no spread, so the interval would have no width"
    rows = [
        draw.Estimate(name, "W" * n**2, Fraction(n % 7, 6), note=f"{note} {'n' * 90 if n == 3 else ''}") for n, name in enumerate(HOSTILE)
    ]
    assert clashes(page(draw._intervals, rows, "A claim " * 12, "unit " * 60, 0)) == []
    assert clashes(page(draw._intervals, [draw.Estimate("A", "", 0, -1.0, 1.0)], "t", "u", -1)) == []


def test_a_long_name_is_cut_in_its_middle_and_right_to_left_text_moves_no_number():
    alt = inversion_page(campaign(2, 3, 1, names=["x" * 250 + "MID" + "y" * 247, "שלום 12"])).alt
    assert "MID" not in alt
    assert re.search("x{5,30}…y{5,30}:", alt)
    assert "\u200eשלום 12\u200e: " in alt


def test_no_text_is_smaller_than_nine_points():
    drawn = inversion_page(campaign(4, 200, 4))
    assert min(text.get_fontsize() for text in drawn.axes.texts) >= 9


def test_each_pair_differs_by_marker_and_dash_not_by_colour_alone():
    data = read_campaign()
    with draw._style():
        curves = {name: [pass_hat(k)(data.of(name)) for k in (1, 2)] for name in data.candidates}
        styles = draw._dial_styles(curves, [["MERGE"], ["CLAUDE"]])
    for (_, marker, dash, _), (_, other, another, _) in itertools.combinations(styles.values(), 2):
        assert marker != other
        assert dash != another


def test_spread_moves_labels_as_little_as_needed():
    assert draw._spread([10, 50], 20) == [10, 50]
    assert draw._spread([10, 10, 50], 20) == [0, 20, 50]
    assert draw._spread([5, 0], 10, 0, 100) == pytest.approx([10, 0])
    for seed in range(50):
        rng = random.Random(seed)
        wanted = [rng.uniform(0, 100) for _ in range(9)]
        found = draw._spread(wanted, 12, 0, 120)
        assert min(found) >= -1e-9
        assert max(found) <= 120 + 1e-9
        ordered = [found[i] for i in sorted(range(9), key=lambda i: wanted[i])]
        assert all(b - a >= 12 - 1e-9 for a, b in itertools.pairwise(ordered))


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_picture_is_an_image_with_alt_text_and_the_same_words_in_plain_text():
    picture = draw.inversion(campaign(2, 3, 2, names=['"><script>alert(1)</script>', "B & 'b'"]))
    bundle = picture._repr_mimebundle_()
    assert list(bundle) == ["text/html", "text/plain"]
    assert bundle["text/plain"] == picture.alt
    match = re.fullmatch(
        r'<img alt="([^"<>]*)" data-claim="[^"<>]*" src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)" style="max-width:100%">',
        bundle["text/html"].strip(),
    )
    assert match
    assert html.unescape(match[1]) == picture.alt
    assert base64.b64decode(match[2]).decode() == picture.svg
    assert "svg" not in repr(picture)


def test_the_svg_is_well_formed_opaque_self_contained_and_names_no_version_or_date():
    for picture in (draw.inversion(campaign(4, 12, 2, names=HOSTILE[:4], ids=HOSTILE[:12])), draw.dial(campaign(13, 5, 2, names=HOSTILE))):
        root = ElementTree.fromstring(picture.svg.partition("\n<svg")[1].strip() + picture.svg.partition("\n<svg")[2])
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "defs", "style", "g", "path", "use", "clipPath", "rect", "pattern"}
        assert "fill: #ffffff" in picture.svg[:1200]
        assert not re.search(r"<!--|<script|onload|matplotlib|\d{4}-\d\d-\d\d|href=\"[^#]", picture.svg.replace('xlink:href="#', ""))


def test_the_svg_does_not_depend_on_the_readers_settings():
    import matplotlib

    plain = published()[1].svg
    with matplotlib.rc_context(
        {"font.size": 30, "svg.fonttype": "none", "text.usetex": True, "axes.facecolor": "red", "lines.linewidth": 9}
    ):
        assert draw.dial(read_campaign()).svg == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_a_fresh_process_with_another_hash_seed_draws_the_same_bytes_and_never_imports_pyplot():
    program = f"""
import hashlib, sys
from fractions import Fraction
import evalkit.draw as draw
assert "matplotlib" not in sys.modules
from evalkit import read_campaign, read_reference, read_tallies
{inspect.getsource(published_pictures)}
drawn = published_pictures()
assert "matplotlib.pyplot" not in sys.modules
print(hashlib.sha256("".join(p.svg + p.alt for p in drawn).encode()).hexdigest())
"""
    fresh = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "1"}, capture_output=True, text=True, check=True
    ).stdout
    assert fresh.strip() == hashlib.sha256("".join(p.svg + p.alt for p in published()).encode()).hexdigest()


def test_pictures_are_small():
    for picture in published():
        assert len(picture.svg) < 70_000
    largest = [draw.inversion(campaign(n, i, r, missing=9)) for n, i, r in sizes((4, 12, 6), more=[(4, 200, 48)])]
    if LONG:
        largest += [draw.dial(campaign(13, 40, 12)), draw.areas(*tallies([f"group number {n}" for n in range(12)]))]
    for picture in largest:
        assert len(picture.svg) < 200_000


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_unknown_repeated_or_no_candidates_are_refused():
    data = read_campaign()
    for names in (["CLAUDE", "X"], ["CLAUDE", "CLAUDE"], []):
        for figure in (draw.inversion, draw.dial):
            with pytest.raises(InputError):
                figure(data, candidates=names)


def test_a_reduction_that_does_not_apply_is_refused():
    with pytest.raises(RuleError):
        draw.inversion(read_campaign(), pass_at(3))
    with pytest.raises(RuleError):
        draw.inversion(read_campaign(), mean_score)


@pytest.mark.parametrize("figure", [draw.mix_lines, draw.areas])
def test_unlike_groups_and_unassessed_requests_are_refused(figure):
    before, after = read_tallies().values()
    reference = read_reference()
    with pytest.raises(MixError, match="not in"):
        figure(before, Tally.of("after", {"routine": (1, 2)}), reference)
    with pytest.raises(MixError, match="no assessed request"):
        figure(before, Tally.of("after", {"routine": (1, 2), "complex": (0, 0)}), reference)
    with pytest.raises(CoverageError, match="unassessed"):
        figure(before, Tally.of("after", {"routine": (1, 2, 3), "complex": (1, 2)}), reference)
    with pytest.raises(MixError):
        figure(before, after, Reference("r", "g", {"routine": Fraction(1)}, "v"))


def test_intervals_refuse_what_would_leave_the_axis_and_a_row_that_says_nothing():
    good = draw.Estimate("A", "1 of 2", Fraction(1, 2), 0.1, 0.9)
    for bad in (
        good._replace(point=0.5), good._replace(point=True), good._replace(point=Fraction(3, 2)), good._replace(low=-0.1),
        good._replace(high=float("nan")), good._replace(low=0.95), good._replace(high=None), good._replace(low=None, high=None),
        good._replace(missing=(Fraction(1, 2), Fraction(1, 3))), good._replace(missing=(0.1, 0.2)),
    ):  # fmt: skip
        with pytest.raises(InputError, match="'A'"):
            draw.intervals([good, bad], title="t", unit="u")
    for rows in ([], [good] * 14):
        with pytest.raises(InputError, match="1 to 13"):
            draw.intervals(rows, title="t", unit="u")
