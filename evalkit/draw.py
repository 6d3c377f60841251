"""The figures and their alt text; the only floats in sight.

Each figure is drawn on a page measured in CSS pixels, so that a label's width is known before it is placed and no two
labels overlap. Blue and vermillion are almost equally light: every pair differs by marker, dash or hatch and by a direct
label too, and no figure has a legend. matplotlib is imported when a figure is drawn; pyplot and its global state never are.
"""

from __future__ import annotations

import base64
import html
import io
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._exact import decimal, is_exact, percent, points
from .campaign import MISSING, OUTCOMES, PASS, Campaign, Coverage, Instances
from .decide import RankKey, rank, rank_key
from .errors import CoverageError, InputError, listing, plain, quote
from .reductions import Reduction, cell_mean, counted, fail_closed, name_of, pass_hat, unit_of
from .reweighting import Reference, Tally, decompose, group_rates, observed_mix, observed_rate, reverses, standardise

__all__ = ["Estimate", "Picture", "areas", "dial", "intervals", "inversion", "mix_lines"]

_BLUE, _VERMILLION, _GREY, _INK, _FAINT = "#0072B2", "#D55E00", "#6B6B6B", "#1A1A1A", "#C8C8C8"
_DARK = {_BLUE: "#00578A", _VERMILLION: "#9E4300", _GREY: _INK}  # the same hues, dark enough for text
_TITLE, _BODY, _SMALL = 17.0, 14.0, 12.5  # text sizes in CSS pixels; 12 is 9 pt
_EDGE = 20.0
_LETTERS = {"absent": "a", "error": "e", "timeout": "t", "cancelled": "c", "ungraded": "u"}
_MOST_GRID = (12, 6, 4)  # instances, repetitions and candidates that a grid of letters still shows
_MOST_ROWS = 13  # of a figure of intervals
_MARKERS = "Dv^<>pP*XhdH8"
_DASHES = ((0, (1, 1.5)), (0, (6, 2)), (0, (3, 1, 1, 1)), (0, (8, 2, 2, 2)), (0, (2, 2)))


@dataclass(frozen=True)
class Picture:
    """A figure as a page shows it: its claim, its description from the exact counts, and the drawing."""

    title: str
    alt: str
    svg: str = field(repr=False)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        # An untrusted notebook does not show image/svg+xml, and nbconvert drops alt text that metadata holds.
        data = base64.b64encode(self.svg.encode()).decode("ascii")
        claim = f'data-claim="{html.escape(self.title)}"'  # what a narrow page says above a picture that is wider than it
        image = f'<img alt="{html.escape(self.alt)}" {claim} src="data:image/svg+xml;base64,{data}" style="max-width:100%">'
        # JupyterLab shows the first line of a folded output; a blank one gives no answer away.
        return {"text/html": f" \n{image}", "text/plain": self.alt}


def inversion(
    campaign: Campaign,
    rule_key_reduction: Reduction = fail_closed,
    picker: Reduction = cell_mean,
    candidates: Sequence[str] | None = None,
    *,
    count_as_fail: Sequence[str] = (),
) -> Picture:
    """Draw what the picker counts beside what the release rule counts, and whom each of them chooses.

    Up to four candidates are grids of letters, or, from 13 instances or 7 repetitions, strips sorted by passes; more are two
    rankings joined by lines. An incomplete candidate is shown with its coverage, without a bar or a place. ``count_as_fail``
    is the rule's. Raises: InputError for an unknown or repeated candidate; RuleError where a reduction does not apply.
    """
    with _style():
        return _inversion(campaign, rule_key_reduction, picker, candidates, count_as_fail).picture()


def dial(campaign: Campaign, candidates: Sequence[str] | None = None, *, count_as_fail: Sequence[str] = ()) -> Picture:
    """Draw pass^k for k = 1..R: from the cell mean to the fail-closed share, on one line a candidate.

    Incomplete candidates are named, not drawn. Raises: InputError for an unknown or repeated candidate; CoverageError if
    no candidate is complete.
    """
    with _style():
        return _dial(campaign, candidates, count_as_fail).picture()


def dial_apart(views: Mapping[str, Instances]) -> Picture:
    """Draw the dial of candidates that no campaign joins, such as those of which only histograms are published.

    Raises: InputError for no candidate; RuleError for unlike repetitions; CoverageError if no candidate is complete.
    """
    if not views:
        raise InputError("no candidate", "at least one", "name the candidates to draw")
    ks = range(1, max(int(view.planned.max(initial=1)) for view in views.values()) + 1)
    found = [(v, Coverage(v.candidate, v.cells, int((v.passed + v.failed).sum()), {}, {})) for v in views.values()]
    with _style():
        return _dial_of(_measured(found, [pass_hat(k) for k in ks])).picture()


def mix_lines(before: Tally, after: Tally, reference: Reference) -> Picture:
    """Draw the pass rate of two periods at every mix of two groups (Baker and Kramer); hollow marks are standardised rates.

    More groups, or one, are drawn as a row each: rate before and after, marks as large as the group's share.
    Raises: MixError for unlike groups or a group without assessed requests; CoverageError for unassessed requests.
    """
    with _style():
        periods = _periods(before, after, reference)
        return (_lines if len(before.groups) == 2 else _dumbbells)(periods, reference).picture()


def areas(before: Tally, after: Tally, reference: Reference) -> Picture:
    """Draw each group as a column, its width the share and its height the rate: the pass rate is the area.

    Panels: each period at its own mix, then at the reference's. Raises: as ``mix_lines``.
    """
    with _style():
        return _areas(_periods(before, after, reference), reference).picture()


class Estimate(NamedTuple):
    """A row of ``intervals``: what was counted, its interval or, in ``note``, why there is none.

    ``missing`` is the worst and the best case over what has no verdict yet; a row without a ``point`` still shows it.
    """

    name: str
    counts: str
    point: int | Fraction | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    missing: tuple[int | Fraction, int | Fraction] | None = None


def intervals(rows: Sequence[Estimate], *, title: str, unit: str, difference: bool = False) -> Picture:
    """Draw up to 13 counts with their intervals on one axis, 0 to 1, or -1 to 1 for a ``difference``.

    ``title`` is the claim, ``unit`` says what is counted and which interval is drawn. A plain tuple in the order of
    ``Estimate`` is a row too. Raises: InputError for no row or too many, for a number off the axis, or for a row
    without any of an interval, a worst and best case, and a note.
    """
    kept, least = [Estimate(*row) for row in rows], -1 if difference else 0
    if not 1 <= len(kept) <= _MOST_ROWS:
        raise InputError(f"{len(kept)} rows", f"1 to {_MOST_ROWS}", "draw fewer rows at a time")
    for row in kept:
        _check_row(row, least)
    with _style():
        return _intervals(kept, plain(title), plain(unit), least).picture()


# --- the page ---------------------------------------------------------------------------------------------------------


@contextmanager
def _style() -> Iterator[None]:
    """The defaults of matplotlib, whatever the reader's settings, and ids that do not change from run to run."""
    import matplotlib.style

    own = {"svg.hashsalt": "evalkit", "svg.fonttype": "path", "hatch.linewidth": 1.0, "path.simplify": False}
    with matplotlib.style.context(["default", own]):
        yield


@cache
def _font(bold: bool, size: float) -> Any:
    """The font that matplotlib ships, by its file: another DejaVu Sans on the machine would change the drawing."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return FontProperties(fname=str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), size=size * 0.75)


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset.intersection(*(frozenset(get_font(_font(bold, 12.0).get_file()).get_charmap()) for bold in (False, True)))


@cache
def _width(words: str, size: float, bold: bool = False) -> float:
    """The width of a text in CSS pixels."""
    from matplotlib.textpath import TextToPath

    width: float = TextToPath().get_text_width_height_descent(words, _font(bold, size), ismath=False)[0]
    return width * 4 / 3


def _middle(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def _said(text: str, most: int = 48) -> str:
    """A stranger's name within a sentence: one line, its middle cut; right-to-left letters do not reorder their neighbours."""
    shown = plain(_middle(text, most))
    return f"\u200e{shown}\u200e" if any(unicodedata.bidirectional(ch) in ("R", "AL") for ch in shown) else shown


def _drawable(text: str) -> str:
    """Characters that the font lacks become escapes, as control characters do."""
    return "".join(ch if ord(ch) in _glyphs() else ch.encode("unicode_escape").decode("ascii") for ch in text)


def _fit(text: str, width: float, size: float = _BODY, bold: bool = False) -> str:
    """A stranger's name cut in the middle until it is no wider than ``width``."""
    fits, most = 1, min(len(text), 64)
    while fits < most:
        tried = (fits + most + 1) // 2
        fits, most = (tried, most) if _width(_drawable(_said(text, tried)), size, bold) <= width else (fits, tried - 1)
    return _drawable(_said(text, fits))


def _wrap(words: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Lines no wider than ``width``."""
    lines = [""]
    for word in _drawable(words).split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _width(longer, size, bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _even_lines(words: str, width: float, size: float, bold: bool) -> list[str]:
    """As few lines as ``_wrap`` gives, of about equal length."""
    lines = _wrap(words, width, size, bold)
    halves = [_drawable(half) for half in words.replace("; ", ";\n").split("\n")]
    if len(lines) == len(halves) == 2 and max(_width(half, size, bold) for half in halves) <= width:
        return halves
    return next(tried for n in range(10, 0, -1) if len(tried := _wrap(words, width * (11 - n) / 10, size, bold)) == len(lines))


def _listed(names: Sequence[str], most: int = 3) -> str:
    shown = [_said(name, 24) for name in names]
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _pct(number: Fraction) -> str:
    """A percentage; the decimal only where it is not whole.

    >>> _pct(Fraction(3, 4)), _pct(Fraction(1, 3)), _pct(Fraction(1, 3000))
    ('75%', '33.3%', '0.03%')
    """
    if (number * 100).denominator == 1:
        return percent(number, 0)
    return percent(number, 1 if Fraction(1, 1000) <= number <= Fraction(999, 1000) else 2)


def _pair(first: Fraction, second: Fraction) -> tuple[str, str]:
    """Two percentages side by side: the same decimals, and as many as tell them apart.

    >>> _pair(Fraction(63, 100), Fraction(17, 25)), _pair(Fraction(1, 3), Fraction(1, 4)), _pair(Fraction(1, 3), Fraction(3334, 10000))
    (('63%', '68%'), ('33.3%', '25.0%'), ('33.33%', '33.34%'))
    """
    if first == second or (first * 100).denominator == (second * 100).denominator == 1:
        return _pct(first), _pct(second)
    least = max(len(_pct(number).partition(".")[2]) - 1 for number in (first, second))
    return next(pair for n in range(least, 19) if len(set(pair := (percent(first, n), percent(second, n)))) == 2 or n == 18)


def _pts(number: Fraction) -> str:
    return points(number, 0 if (number * 100).denominator == 1 else 1).replace("-", "\u2212")


def _spread(wanted: Sequence[float], gap: float, low: float = -math.inf, high: float = math.inf) -> list[float]:
    """The positions nearest to the wanted ones that lie at least ``gap`` apart, in the same order."""
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    blocks: list[tuple[float, int]] = []
    for i in order:
        centre, size = wanted[i], 1
        while True:
            half = (size - 1) * gap / 2
            centre = max(low + half, min(high - half, centre))
            if not blocks or blocks[-1][0] + (blocks[-1][1] + size) * gap / 2 <= centre + 1e-9:
                break
            other, n = blocks.pop()
            centre, size = (other * n + centre * size) / (n + size), n + size
        blocks.append((centre, size))
    places = [centre + (j - (size - 1) / 2) * gap for centre, size in blocks for j in range(size)]
    found = [0.0] * len(wanted)
    for i, place in zip(order, places, strict=True):
        found[i] = place
    return found


class _Page:
    """A white page in CSS pixels, y downwards, whose height is known last."""

    def __init__(self, width: float, title: str) -> None:
        from matplotlib.figure import Figure

        self.title, self.alt, self.width = title, "", width
        self.figure = Figure(figsize=(1, 1), dpi=96, facecolor="white")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)
        self.taken: list[tuple[float, float, float, float]] = []
        self.y = _EDGE
        self.lines(title, _TITLE, bold=True)
        self.y += 14

    def text(self, x: float, y: float, words: str, size: float = _BODY, *, bold: bool = False, colour: str = _INK,
             align: str = "left", upright: bool = False) -> None:  # fmt: skip
        """One line, vertically centred on ``y``; ``upright`` text runs upwards from ``y``."""
        from matplotlib.text import Text

        place = {"rotation": 90, "ha": "center", "va": "bottom"} if upright else {"ha": align, "va": "baseline"}
        y += 0 if upright else 0.35 * size
        self.axes.add_artist(
            Text(x, y, words, fontproperties=_font(bold, size), color=colour, transform=self.axes.transData, parse_math=False, **place)
        )
        if upright:
            return
        y -= 0.35 * size
        wide = _width(words, size, bold)
        left = x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * wide
        self.taken.append((left, y - 0.6 * size, left + wide, y + 0.6 * size))

    def lines(self, words: str, size: float, *, bold: bool = False, colour: str = _INK) -> None:
        """A paragraph over the whole width, from the present height on."""
        for line in (_even_lines if bold else _wrap)(words, self.width - 2.5 * _EDGE, size, bold):
            self.text(_EDGE, self.y + 0.65 * size, line, size, bold=bold, colour=colour)
            self.y += 1.35 * size

    def curve(self, xs: Sequence[float], ys: Sequence[float], **look: Any) -> None:
        from matplotlib.lines import Line2D

        self.axes.add_artist(Line2D(xs, ys, clip_on=False, **look))

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str = _INK, width: float = 1.0, dash: Any = "-") -> None:
        self.curve(xs, ys, color=colour, linewidth=width * 0.75, linestyle=dash, zorder=1.5, solid_capstyle="butt")

    def mark(self, x: float, y: float, marker: str, colour: str, size: float = 11, *, hollow: bool = False) -> None:
        self.curve([x], [y], marker=marker, markersize=size * 0.75, markeredgecolor=colour, markeredgewidth=1.8,
                   markerfacecolor="white" if hollow else colour, linestyle="none", zorder=3)  # fmt: skip

    def letters(self, places: Sequence[tuple[float, float]], letter: str, colour: str, *, bold: bool = True) -> None:
        """One letter at many places: a marker, which an SVG holds once."""
        from matplotlib.path import Path as Outline
        from matplotlib.textpath import TextPath

        if places:
            shape = TextPath((0, 0), letter, prop=_font(bold, _BODY), usetex=False)
            box = shape.get_extents()
            centred = Outline(shape.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], shape.codes)
            self.curve(*zip(*places, strict=True), marker=centred, markersize=2 * np.abs(centred.vertices).max(), color=colour,
                       markeredgewidth=0, linestyle="none", zorder=3)  # fmt: skip

    def boxes(self, places: Sequence[tuple[float, float, float, float]], fill: str = "none", edge: str = "none", width: float = 1.0,
              hatch: str = "", dash: Any = "-", over: float = 1.0) -> None:  # fmt: skip
        """Rectangles (left, top, width, height) as one path."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path as Outline

        if not places:
            return
        corners = [p for x, y, w, h in places for p in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))]
        codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY] * len(places)
        patch = PathPatch(Outline(corners, codes), facecolor=fill, edgecolor=edge, linewidth=width * 0.75 if edge != "none" else 0,
                          linestyle=dash, hatch=hatch or None, clip_on=False, zorder=over)  # fmt: skip
        patch.set_joinstyle("miter")
        self.axes.add_artist(patch)

    def arrow(self, curve: Sequence[tuple[float, float]], colour: str = _INK) -> None:
        """An arrow along two points or along a curve with one control point."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path as Outline

        codes = [Outline.MOVETO, *([Outline.LINETO] if len(curve) == 2 else [Outline.CURVE3] * 2)]
        self.axes.add_patch(FancyArrowPatch(path=Outline(curve, codes), arrowstyle="-|>", mutation_scale=11, color=colour, linewidth=1.3,
                                            clip_on=False, zorder=2.5))  # fmt: skip

    def place(self, x: float, y: float, words: str, clear: Sequence[tuple[float, float]], size: float, *, bold: bool = False,
              colour: str = _INK, lean: int = 0, within: tuple[float, float, float, float]) -> None:  # fmt: skip
        """A label near a point, clear of all other labels and, where possible, of the points in ``clear``; joined if it is far.

        ``lean`` prefers a place below (1) or above (-1) the point.
        """
        half, tall = _width(words, size, bold) / 2 + 3, 0.6 * size + 1
        down, right = (grid.ravel() for grid in np.meshgrid(np.arange(-160.0, 161.0, 4.0), np.arange(-200.0, 201.0, 5.0)))
        away = np.hypot(np.maximum(0, np.abs(right) - half), np.maximum(0, np.abs(down) - tall)).round(6)  # the same on any machine
        costs = away + np.where(lean * down < 0, 60, 0) + np.where(away > 16, 25, 0)
        cx, cy = x + right, y + down
        free = (cx - half >= within[0]) & (cx + half <= within[2]) & (cy - tall >= within[1]) & (cy + tall <= within[3])
        for x0, y0, x1, y1 in self.taken:
            free &= (cx - half >= x1) | (cx + half <= x0) | (cy - tall >= y1) | (cy + tall <= y0)
        points = np.array(clear)
        best: tuple[float, float, float] | None = None
        for n in np.lexsort((cy, cx, costs)).tolist():
            if best and costs[n] >= best[0]:
                break
            if free[n]:
                hits = np.count_nonzero((np.abs(points[:, 0] - cx[n]) < half) & (np.abs(points[:, 1] - cy[n]) < size / 2))
                best = min(best or (math.inf, 0.0, 0.0), (float(costs[n] + 30.0 * hits), float(cx[n]), float(cy[n])))
        if best is None:
            raise InputError(f"no room for the label {quote(words)}", "a figure with room for its labels", "shorten the names")
        _, at_x, at_y = best
        near_x, near_y = max(at_x - half, min(at_x + half, x)), max(at_y - tall, min(at_y + tall, y))
        if math.hypot(near_x - x, near_y - y) > 16:
            self.line([x, near_x], [y, near_y], colour, 0.9)
        self.boxes([(at_x - half + 2, at_y - 8, 2 * half - 4, 16)], fill="white", over=2)
        self.text(at_x, at_y, words, size, bold=bold, colour=colour, align="center")

    def finish(self, alt: str) -> _Page:
        height = self.y + _EDGE - 6
        self.figure.set_size_inches(self.width / 96, height / 96)
        self.axes.set_xlim(0, self.width)
        self.axes.set_ylim(height, 0)
        self.alt = alt
        return self

    def picture(self) -> Picture:
        out = io.StringIO()
        self.figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        drawn = re.sub(r"<!--.*?-->", "", out.getvalue(), flags=re.DOTALL)  # matplotlib repeats each text as a comment
        return Picture(self.title, self.alt, re.sub(r"\s*\n\s*", "\n", drawn))


# --- the inversion ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A candidate with its two numbers, or why it has none."""

    view: Instances
    coverage: Coverage
    key: RankKey | None
    gap: str

    @property
    def name(self) -> str:
        return self.view.candidate

    @property
    def short(self) -> tuple[str, str]:
        """What stands in place of a number."""
        return ("unavailable", "") if self.coverage.complete else ("incomplete", f"{self.coverage.observed} of {self.coverage.planned}")


def _rows(campaign: Campaign, candidates: Sequence[str] | None, reductions: Sequence[Reduction], fails: Sequence[str]) -> list[_Row]:
    names = campaign.candidates if candidates is None else tuple(candidates)
    if not names or len(set(names)) != len(names):
        raise InputError(f"candidates {quote(list(names))}", "at least one candidate, each once", "correct the list")
    return _measured([(campaign.of(name, fails), campaign.coverage(name, fails)) for name in names], reductions)


def _measured(views: Sequence[tuple[Instances, Coverage]], reductions: Sequence[Reduction]) -> list[_Row]:
    rows = []
    for view, coverage in views:
        try:
            rows.append(_Row(view, coverage, rank_key(view, reductions), ""))
        except CoverageError as gap:
            rows.append(_Row(view, coverage, None, str(coverage) if not coverage.complete else gap.found))
    return rows


def things(reduction: Reduction) -> str:
    """What a reduction counts, in words that fit behind "count"."""
    name = name_of(reduction)
    k = name.partition("(")[2].rstrip(")")
    if getattr(reduction, "__module__", "") != fail_closed.__module__:
        return f"{_said(unit_of(reduction), 24)} by {_said(name, 24)}"  # a reader's own rule may share its unit with another
    words = {
        "passing_cells": "passing cells",
        "cell_mean": "passing cells",
        "fail_closed": "resolved instances",
        "at_least": f"instances with {k}+ passes",
        "pass_at": f"{k}-draws with a pass",
        "pass_hat": f"{k}-draws that all pass",
        "lowest": f"the lowest total {_said(k, 24)}",
    }
    return words.get(name.partition("(")[0]) or unit_of(reduction)


def _amount(reduction: Reduction, view: Instances, value: int | Fraction) -> tuple[str, Fraction | None]:
    """A short label, and the share of the whole where the unit has one."""
    whole = {"cells": view.cells, "instances": len(view.ids)}.get(unit_of(reduction))
    number = value if isinstance(value, int) else value * (whole or 1)
    if whole and Fraction(number).denominator == 1:
        return f"{int(number)} of {whole}", Fraction(int(number), whole)
    if name_of(reduction).startswith(("pass_at(", "pass_hat(")):
        return _pct(Fraction(value)), Fraction(value)
    return (str(value) if Fraction(value).denominator == 1 else decimal(value)), None


def _firsts(rows: Sequence[_Row], at: int) -> dict[str, int]:
    """The place of each complete candidate under one of the two reductions."""
    return {place.candidate: place.place for place in rank({row.name: (row.key[at],) for row in rows if row.key})}


def _colour(name: str, picked: Sequence[str], ruled: Sequence[str]) -> str:
    """Blue for the rule's choice, vermillion for the picker's; who is both takes the colour that fewer others have."""
    if name in picked and name in ruled:
        return _BLUE if len(ruled) <= len(picked) else _VERMILLION
    return _BLUE if name in ruled else _VERMILLION if name in picked else _GREY


def _inversion_title(rows: Sequence[_Row], reductions: Sequence[Reduction], first: Sequence[Sequence[str]]) -> str:
    counts = [things(r) for r in reductions]
    complete = [row for row in rows if row.key]
    if not complete:
        return "No candidate is complete: nobody is chosen"
    if len(complete) == 1:
        name = _said(complete[0].name, 24)
        amounts = [_amount(r, complete[0].view, value)[0] for r, value in zip(reductions, complete[0].key or (), strict=True)]
        told = [f"{amount} ({thing})" for amount, thing in zip(amounts, counts, strict=True)]
        return f"Only {name} is complete: nothing to compare" if len(rows) > 1 else f"{name}: {', '.join(dict.fromkeys(told))}"
    verb = [f" and {_said(names[0], 24)} wins" if len(names) == 1 else f": {_listed(names)} tie" for names in first]
    note = "" if len(complete) == len(rows) else f" ({len(complete)} of {len(rows)} candidates are complete)"
    if counts[0] == counts[1] and first[0] == first[1]:
        return f"Count {counts[0]}{verb[0]}{note}"
    if first[0] == first[1]:
        return f"Count {counts[0]} or {counts[1]}: either way {verb[0].removeprefix(' and').removeprefix(':').strip()}{note}"
    return f"Count {counts[0]}{verb[0]}; count {counts[1]}{verb[1]}{note}"


def _inversion(campaign: Campaign, rule: Reduction, picker: Reduction, candidates: Sequence[str] | None, fails: Sequence[str]) -> _Page:
    reductions = (picker, rule)
    rows = _rows(campaign, candidates, reductions, fails)
    places = [_firsts(rows, at) for at in (0, 1)]
    first = [[name for name, place in found.items() if place == 1] for found in places]
    title = _inversion_title(rows, reductions, first)
    colours = {row.name: _colour(row.name, *first) for row in rows}
    if len(rows) > _MOST_GRID[2]:
        page = _slopes(title, rows, reductions, places, colours)
    else:
        page = _grids(title, campaign, rows, reductions, places, colours)
    told = []
    for row in rows:
        numbers = dict.fromkeys(counted(r, row.view, value) for r, value in zip(reductions, row.key or (), strict=False))
        told.append(f"{_said(row.name)}: " + (", ".join(numbers) if row.key else f"not ranked, {row.gap}"))
    return page.finish(f"{title}. " + "; ".join(told) + ".")


def _grids(title: str, campaign: Campaign, rows: Sequence[_Row], reductions: Sequence[Reduction], places: Sequence[Mapping[str, int]],
           colours: Mapping[str, str]) -> _Page:  # fmt: skip
    """A row a candidate: its name, its cells, and a bar for each of the two counts."""
    lettered = len(campaign.instances) <= _MOST_GRID[0] and len(campaign.repetitions) <= _MOST_GRID[1]
    cell, reps = 28.0 if len(campaign.instances) <= 8 else 22.0, len(campaign.repetitions)
    wide, tall = (len(campaign.instances) * cell, reps * cell) if lettered else (252.0, 64.0)
    names = {row.name: _fit(row.name, 120, _BODY, bold=True) for row in rows}
    rep_names = [_fit(f"rep {name}", 64, _SMALL) for name in campaign.repetitions] if lettered else []
    grid = _EDGE + max(_width(name, _BODY, bold=True) for name in names.values()) + 14
    grid += max((_width(name, _SMALL) for name in rep_names), default=-8) + 8
    amounts = [(_amount(r, row.view, value)[0], "tied first") for row in rows for r, value in zip(reductions, row.key or (), strict=False)]
    track, column = 110.0, max([200.0, *(131 + _width(word, _BODY, bold=True) for pair in amounts for word in pair)])
    bars = grid + max(wide, 120) + 32, grid + max(wide, 120) + 32 + column + 20
    page = _Page(bars[1] + column + _EDGE, title)
    ids = [_fit(name, 96, _SMALL) for name in campaign.instances] if lettered else []
    longest = max((_width(name, _SMALL) for name in ids), default=0.0)
    upright = longest > cell - 3
    top = page.y + max(42.0, longest + 12 if upright else 0.0)
    for x, who, reduction in zip(bars, ("picker counts", "release rule counts"), reductions, strict=True):
        page.text(x, top - 32, who, _SMALL, colour=_GREY)
        page.text(x, top - 14, _fit(things(reduction), column, _BODY, bold=True), bold=True)
    for i, name in enumerate(ids):
        page.text(grid + (i + 0.5) * cell, top - (8 if upright else 14), name, _SMALL, align="center", upright=upright)
    if not lettered:
        page.text(grid, top - 32, f"{len(campaign.instances)} instances, sorted by passes", _SMALL)
        page.text(grid, top - 14, f"height: {reps} repetition{'s' * (reps > 1)}", _SMALL, colour=_GREY)
    step = max(tall, 48) + 22
    for n, row in enumerate(rows):
        y = top + n * step
        page.text(_EDGE, y + tall / 2, names[row.name], bold=True)
        if lettered:
            for r, name in enumerate(rep_names):
                page.text(grid - 8, y + (r + 0.5) * cell, name, _SMALL, colour=_GREY, align="right")
            _letters(page, campaign, row, grid, y, cell, colours[row.name])
        else:
            _strip(page, row, (grid, y, wide, tall), colours[row.name])
        _bars(page, rows, row, reductions, places, bars, y + tall / 2, track, colours[row.name])
    page.y = top + len(rows) * step - 4
    page.lines(_key_to_cells(rows, lettered), _SMALL, colour=_GREY)
    return page


def _letters(page: _Page, campaign: Campaign, row: _Row, left: float, top: float, cell: float, colour: str) -> None:
    layer = campaign.codes[:, campaign.candidates.index(row.name)]
    spots: dict[str, list[tuple[float, float]]] = {word: [] for word in OUTCOMES}
    for (r, i), code in np.ndenumerate(layer):
        spots[OUTCOMES[code]].append((left + (i + 0.5) * cell, top + (r + 0.5) * cell))

    def squares(*words: str) -> list[tuple[float, float, float, float]]:
        return [(x - cell / 2 + 1, y - cell / 2 + 1, cell - 2, cell - 2) for word in words for x, y in spots[word]]

    page.boxes(squares("pass"), fill=colour)
    page.boxes(squares("fail"), edge="#9A9A9A")
    page.boxes(squares(*MISSING), fill="#E4E4E4", edge=_INK, width=1.4, dash=(0, (2, 2)))
    for word, places in spots.items():
        letter, tone = {"pass": ("T", "white"), "fail": ("F", _GREY)}.get(word) or (_LETTERS[word], _INK)
        page.letters(places, letter, tone, bold=word != "fail")
    whole = np.flatnonzero((layer == PASS).all(axis=0)).tolist()
    page.boxes([(left + i * cell, top, cell, cell * len(layer)) for i in whole], edge=_INK, width=2.6, over=2)


def _strip(page: _Page, row: _Row, place: tuple[float, float, float, float], colour: str) -> None:
    """A column an instance, sorted by passes: the filled area is the cell mean, the full-height width the resolved share."""
    left, top, wide, tall = place
    view = row.view
    missing = view.planned - view.passed - view.failed
    shapes, times = np.unique(np.stack([-view.passed, -missing, view.planned]), axis=1, return_counts=True)
    passed, absent, x = [], [], left
    for (minus_passed, minus_missing, planned), n in zip(shapes.T.tolist(), times.tolist(), strict=True):
        w, h = wide * n / len(view.ids), tall / max(planned, 1)
        if minus_passed:
            passed.append((x, top + tall + minus_passed * h, w, -minus_passed * h))
        if minus_missing:  # never thinner than a reader can see
            absent.append((x, top, max(w, 1.5), -minus_missing * h))
        x += w
    page.boxes([(left, top, wide, tall)], fill="white", edge="#9A9A9A")
    page.boxes(passed, fill=colour)
    page.boxes(absent, fill=_INK)
    whole = int(np.count_nonzero((view.passed == view.planned) & (view.planned > 0)))
    if whole:
        page.boxes([(left, top, wide * whole / len(view.ids), tall)], edge=_INK, width=2.6, over=2)


def _bars(page: _Page, rows: Sequence[_Row], row: _Row, reductions: Sequence[Reduction], places: Sequence[Mapping[str, int]],
          lefts: Sequence[float], y: float, track: float, colour: str) -> None:  # fmt: skip
    for at, (left, reduction) in enumerate(zip(lefts, reductions, strict=True)):
        if row.key is None:
            page.text(left, y - 9, row.short[0], _SMALL, bold=True)
            page.text(left, y + 9, row.short[1], _SMALL)
            continue
        label, share = _amount(reduction, row.view, row.key[at])
        values = [Fraction(other.key[at]) for other in rows if other.key]
        low, high = (Fraction(0), Fraction(1)) if share is not None else (min(Fraction(0), *values), max(Fraction(0), *values))
        value = share if share is not None else Fraction(row.key[at])
        zero, end = (float((number - low) / ((high - low) or 1)) * track for number in (Fraction(0), value))
        first = places[at][row.name] == 1
        if share is not None:  # the whole, so that 0 % and 100 % are seen as such
            page.boxes([(left, y - 12, track, 24)], edge=_FAINT)
        page.boxes([(left + min(zero, end), y - 12, abs(end - zero), 24)] if end != zero else [], fill=colour if first else "white",
                   edge=colour, width=1.6, hatch="" if first else "////")  # fmt: skip
        page.line([left + zero] * 2, [y - 16, y + 16], _INK, 1.4)
        named = first and len(places[at]) > 1
        page.text(left + track + 9, y - (9 if named else 0), label, bold=first)
        if named:
            alone = sum(place == 1 for place in places[at].values()) == 1
            page.text(left + track + 9, y + 9, "chosen" if alone else "tied first", _BODY, bold=True)


def _key_to_cells(rows: Sequence[_Row], lettered: bool) -> str:
    """One line under the cells: what a mark means, and each reason for a missing cell."""
    counts: Counter[str] = Counter()
    as_fail: Counter[str] = Counter()
    for row in rows:
        counts.update(row.coverage.missing)
        as_fail.update(row.coverage.counted_as_fail)

    def told(reasons: Mapping[str, int]) -> str:
        return ", ".join(f"{_LETTERS[reason] + ' ' if lettered else ''}{reason} ({n})" for reason, n in reasons.items())

    marks = "T passed, F failed" if lettered else "Filled: passed. White: failed"
    outline = ". Outlined: every repetition passed (resolved)."
    missing = f" {'Dashed' if lettered else 'Black'}: no verdict, neither pass nor fail: {told(counts)}." if counts else ""
    return marks + outline + missing + (f" Counted as fail by the rule: {told(as_fail)}." if as_fail else "")


def _slopes(title: str, rows: Sequence[_Row], reductions: Sequence[Reduction], places: Sequence[Mapping[str, int]],
            colours: Mapping[str, str]) -> _Page:  # fmt: skip
    """Two rankings, one candidate a line; candidates that share a place are joined by a bar."""
    page = _Page(800, title)
    ends, step = (300.0, 500.0), 25.0
    complete = [row for row in rows if row.key]
    if complete:
        for at, align in ((0, "right"), (1, "left")):
            x = ends[at] + (-12 if at == 0 else 12)
            page.text(x, page.y + 8, ("picker counts", "release rule counts")[at], _SMALL, colour=_GREY, align=align)
            page.text(x, page.y + 27, _fit(things(reductions[at]), 280, _BODY, bold=True), bold=True, align=align)
        page.y += 62
    slot: list[dict[str, float]] = [{}, {}]
    for at in (0, 1):
        order = sorted(complete, key=lambda row: (places[at][row.name], places[1 - at][row.name]))
        slot[at] = {row.name: page.y + n * step for n, row in enumerate(order)}
        for place in set(places[at].values()):
            tied = [slot[at][name] for name, other in places[at].items() if other == place]
            if len(tied) > 1:
                page.line([ends[at]] * 2, [min(tied) - 5, max(tied) + 5], _INK, 3)
    widest = [max((_width(_amount(r, row.view, (row.key or ())[at])[0], _SMALL, bold=True) for row in complete), default=0.0)
              for at, r in enumerate(reductions)]  # fmt: skip
    for row in complete:
        colour, y = colours[row.name], [slot[at][row.name] for at in (0, 1)]
        first = [places[at][row.name] == 1 for at in (0, 1)]
        dash: Any = "-" if first[1] or not first[0] else (0, (5, 2))
        page.line(ends, y, colour, 2.6 if any(first) else 1.2, dash)
        for at in (0, 1):
            shared = sum(place == places[at][row.name] for place in places[at].values()) > 1
            number = f"{places[at][row.name]}{'=' if shared else ''}"
            label, _ = _amount(reductions[at], row.view, (row.key or ())[at])
            sign, align = (-1, "right") if at == 0 else (1, "left")
            page.mark(ends[at], y[at], "o" if first[1] else "s" if first[0] else ".", colour, 10 if any(first) else 8)
            page.text(ends[at] + sign * 12, y[at], number, _SMALL, bold=first[at], colour=_GREY if not first[at] else _INK, align=align)
            page.text(ends[at] + sign * 50, y[at], label, _SMALL, bold=first[at], align=align)
            name = _fit(row.name, 216 - widest[at], _BODY, bold=True)
            page.text(ends[at] + sign * (64 + widest[at]), y[at], name, bold=first[at], align=align)
    page.y += len(complete) * step + 4
    short = [f"{_said(row.name, 32)}, {row.gap}" for row in rows if not row.key]
    if short:
        page.lines("Incomplete, not ranked: " + "; ".join(short) + ".", _SMALL)
    return page


# --- the dial ---------------------------------------------------------------------------------------------------------


def _dial(campaign: Campaign, candidates: Sequence[str] | None, fails: Sequence[str]) -> _Page:
    ks = range(1, len(campaign.repetitions) + 1)
    return _dial_of(_rows(campaign, candidates, [pass_hat(k) for k in ks], fails))


def _dial_of(rows: Sequence[_Row]) -> _Page:
    curves = {row.name: [Fraction(value) for value in row.key] for row in rows if row.key}
    if not curves:
        raise CoverageError(f"no complete candidate: {quote(rows[0].name)} has {rows[0].gap}", "at least one", "run the missing cells")
    views = {row.name: row.view for row in rows}
    last = len(next(iter(curves.values())))
    tops = [max(curve[k] for curve in curves.values()) for k in range(last)]
    leaders = [[name for name, curve in curves.items() if curve[k] == tops[k]] for k in range(last)]
    title = _dial_title(curves, leaders)
    page = _Page(800, title)
    page.lines("pass^k: the chance that k repetitions of an instance, drawn without replacement, all pass", _SMALL, colour=_GREY)
    page.y += 28
    gap = 21.0
    tall = max(280.0, 26 * len(curves))
    top, sides = page.y, [_dial_labels(curves, views, at) for at in (0, last - 1)]
    x0 = _EDGE + (140 if last == 1 else 60 + sides[0].wide)  # one column: labels to its right
    x1 = x0 if last == 1 else page.width - _EDGE - sides[1].wide
    ceiling = next(
        c for c in (Fraction(1, 10), Fraction(1, 5), Fraction(2, 5), Fraction(3, 5), Fraction(4, 5), Fraction(1)) if c >= tops[0]
    )

    def height(value: Fraction) -> float:
        return top + tall * (1 - float(value / ceiling))

    for tick in (Fraction(0), ceiling / 2, ceiling):
        page.text(_EDGE + 34, height(tick), _pct(tick), _SMALL, colour=_GREY, align="right")
        page.line([_EDGE + 40, _EDGE + 50], [height(tick)] * 2, _GREY)
        page.line([x0, x1] if last > 1 else [x0 - 12, x0 + 12], [height(tick)] * 2, _FAINT if tick else _GREY)
    page.line([_EDGE + 50] * 2, [top, top + tall], _GREY)
    xs = [x0 + (x1 - x0) * k / max(last - 1, 1) for k in range(last)]
    styles = _dial_styles(curves, leaders)
    for name, curve in curves.items():
        colour, marker, dash, width = styles[name]
        page.line(xs, [height(value) for value in curve], colour, width, dash)
        for k in range(last) if last <= 12 else (0, last - 1):
            page.mark(xs[k], height(curve[k]), marker, colour, 10 if width > 2 else 7)
    for side, x, sign, align in ((sides[0], x0, -1, "right"), (sides[1], x1, 1, "left"))[last == 1 :]:
        ys = _spread([height(curves[name][side.at]) for name in side.names], gap, top - 16, top + tall + 4)
        for (name, (shown, label)), y in zip(side.names.items(), ys, strict=True):
            first = name in leaders[side.at]
            page.line([x + sign * 8, x + sign * 30, x + sign * 38], [height(curves[name][side.at]), y, y], styles[name][0], 0.9)
            page.text(x + sign * 42, y, label, _SMALL, bold=first, align=align)
            page.text(x + sign * (54 + side.widest), y, shown, bold=first, align=align)
    page.y = top + tall + 20
    every, apart = math.ceil(last * 22 / max(x1 - x0, 1)), _width(f"k = {last}", _SMALL, bold=True) / 2 + 12
    for k in range(last):
        if k in (0, last - 1) or ((k + 1) % every == 0 and min(k, last - 1 - k) * (x1 - x0) / (last - 1) > apart):
            page.text(xs[k], page.y, f"k = {k + 1}" if k in (0, last - 1) else str(k + 1), _SMALL, align="center", bold=k in (0, last - 1))
    page.text(x0, page.y + 19, "cell mean" if last > 1 else "cell mean = fail-closed share", _SMALL, colour=_GREY, align="center")
    if last > 1:
        page.text(x1, page.y + 19, "fail-closed share", _SMALL, colour=_GREY, align="center")
    page.y += 34
    short = [f"{_said(row.name, 32)}, {row.gap}" for row in rows if not row.key]
    note = "Not drawn, incomplete: " + "; ".join(short) + "." if short else ""
    if note:
        page.lines(note, _SMALL)
    told = []
    for name, curve in curves.items():
        ends = [counted(cell_mean, views[name], curve[0]), counted(fail_closed, views[name], fail_closed(views[name]))]
        between = [f"k = {k + 1} {_pct(curve[k])}" for k in range(1, last - 1)] if len(curves) * last <= 60 else []
        told.append(f"{_said(name)}: " + ", ".join([f"k = 1 {ends[0]}", *between, *([f"k = {last} {ends[1]}"] if last > 1 else [])]))
    return page.finish(f"{title}. pass^k: " + "; ".join(told) + "." + (f" {note}" if note else ""))


class _Labels(NamedTuple):
    """What stands at one end of the dial, highest first: names as shown with their counts, and how wide they are."""

    at: int
    names: dict[str, tuple[str, str]]
    widest: float  # of the counts
    wide: float


def _dial_labels(curves: Mapping[str, Sequence[Fraction]], views: Mapping[str, Instances], at: int) -> _Labels:
    names = sorted(curves, key=lambda name: -curves[name][at])
    counts = {name: _counted_at(views[name], curves[name], at) for name in names}
    widest = max(_width(count, _SMALL, bold=True) for count in counts.values())
    shown = {name: _fit(name, 190 - widest, _BODY, bold=True) for name in names}
    wide = 54 + widest + max(_width(name, _BODY, bold=True) for name in shown.values())
    return _Labels(at, {name: (shown[name], counts[name]) for name in names}, widest, wide)


def _counted_at(view: Instances, curve: Sequence[Fraction], at: int) -> str:
    """The count at either end of the dial: cells at k = 1, instances at k = R."""
    return _amount(fail_closed, view, fail_closed(view))[0] if at else _amount(cell_mean, view, curve[0])[0]


def _dial_title(curves: Mapping[str, Sequence[Fraction]], leaders: Sequence[Sequence[str]]) -> str:
    last = len(leaders)
    led = [f"{_listed(names)} {'leads' if len(names) == 1 else 'tie for the lead'}" for names in (leaders[0], leaders[-1])]
    if len(curves) == 1:
        ((name, curve),) = curves.items()
        if last == 1:
            return f"{_said(name, 24)} passes {_pct(curve[0])} of its cells; one repetition cannot show instability"
        verb = "stays at" if curve[0] == curve[-1] else f"falls from {_pct(curve[0])} to"
        return f"{_said(name, 24)}: pass^k {verb} {_pct(curve[-1])} as k goes from 1 to {last}"
    if last == 1:
        return f"{led[0]} at k = 1, the only setting: one repetition cannot show instability"
    if all(names == leaders[0] for names in leaders):
        return f"{led[0]} at every k from 1 to {last}"
    if leaders[0] == leaders[-1]:
        return f"{led[0]} at k = 1 and at k = {last}, but not at every k between"
    return f"{led[0]} at k = 1, {led[1]} at k = {last}"


def _dial_styles(curves: Mapping[str, object], leaders: Sequence[Sequence[str]]) -> dict[str, tuple[str, str, Any, float]]:
    """Colour, marker, dash and width: the two ends' leaders as in the inversion, the others grey, no two alike in a row."""
    lead = {_BLUE: ("o", "-"), _VERMILLION: ("s", (0, (5, 2)))}
    styles: dict[str, tuple[str, str, Any, float]] = {}
    for n, name in enumerate(curves):
        colour = _colour(name, leaders[0], leaders[-1])
        # Each of the two looks is given once: leaders that tie differ as the others do.
        marker, dash = lead.pop(colour, (_MARKERS[n % len(_MARKERS)], _DASHES[n % len(_DASHES)]))
        styles[name] = colour, marker, dash, 1.4 if colour == _GREY else 2.6
    return styles


# --- the mix ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Period:
    tally: Tally
    rates: Mapping[str, Fraction]
    shares: Mapping[str, Fraction]
    observed: Fraction
    standardised: Fraction

    @property
    def name(self) -> str:
        return self.tally.period


def _periods(before: Tally, after: Tally, reference: Reference) -> tuple[_Period, _Period]:
    decompose(before, after)  # refuses unlike groups, and what has no rate

    def period(tally: Tally) -> _Period:
        return _Period(tally, group_rates(tally), observed_mix(tally), observed_rate(tally), standardise(tally, reference))

    return period(before), period(after)


def _moves(first: Fraction, second: Fraction) -> str:
    if first == second:
        return f"stays at {_pct(first)}"
    return f"{'rises' if second > first else 'falls'} from {' to '.join(_pair(first, second))}"


def _mix_title(a: _Period, b: _Period) -> str:
    changes = [b.rates[group] - a.rates[group] for group in a.rates]
    up = b.observed > a.observed
    if reverses(a.tally, b.tally):
        groups = (
            ("Every group falls" if all(changes) else "No group rises") if up else "Every group rises" if all(changes) else "No group falls"
        )
        return f"{groups}, yet the observed rate {_moves(a.observed, b.observed)}"
    if (a.observed, b.observed) == (a.standardised, b.standardised):
        return f"The rate {_moves(a.observed, b.observed)}, observed and at the reference mix alike"
    sign = [(x > y) - (x < y) for x, y in ((b.observed, a.observed), (b.standardised, a.standardised))]
    link = "; " if sign[0] == sign[1] else ", but "
    return f"The observed rate {_moves(a.observed, b.observed)}{link}at the reference mix it {_moves(a.standardised, b.standardised)}"


def _mix_alt(title: str, periods: Sequence[_Period], reference: Reference) -> str:
    told = []
    for p in periods:
        groups = [
            f"{_said(g)} {x} of {n} ({_pct(p.rates[g])})" for g, x, n in zip(p.tally.groups, p.tally.passed, p.tally.assessed, strict=True)
        ]
        whole = f"{sum(p.tally.passed)} of {sum(p.tally.assessed)} ({_pct(p.observed)})"
        told.append(f"{_said(p.name)}: {', '.join(groups)}; observed {whole}, at the reference mix {_pct(p.standardised)}.")
    weights = ", ".join(f"{_said(group)} {weight}" for group, weight in reference.weights.items())
    a, b = periods
    split = f"Change at the reference mix {_pts(b.standardised - a.standardised)} points, change observed {_pts(b.observed - a.observed)} points."
    return " ".join([f"{title}.", *told, f"Reference mix {_said(reference.reference_id)}: {weights}.", split])


def _lines(periods: tuple[_Period, _Period], reference: Reference) -> _Page:
    """Two groups: every mix is a point on the x axis, each period a straight line over it."""
    a, b = periods
    groups = a.tally.groups
    left, right = groups if b.shares[groups[1]] >= a.shares[groups[1]] else groups[::-1]
    title = _mix_title(a, b)
    page = _Page(800, title)
    x0, x1, top, tall = 80.0, 600.0, page.y + 46, 360.0
    rates = [p.rates[g] for p in periods for g in groups]
    low = max(Fraction(0), Fraction(math.floor(min(rates) * 20) - 1, 20))
    high = min(Fraction(1), Fraction(math.ceil(max(rates) * 20) + 1, 20))

    def at(share: Fraction, rate: Fraction) -> tuple[float, float]:
        return x0 + (x1 - x0) * float(share), top + tall * (1 - float((rate - low) / (high - low)))

    styles = ((_BLUE, "o", "-"), (_VERMILLION, "s", (0, (5, 2))))
    floor = top + tall
    page.line([x0, x0, x1], [top, floor, floor], _GREY)
    page.text(x0, page.y + 6, "pass rate", _SMALL, colour=_GREY, align="center")
    weight = reference.weights[right]
    x_ref = at(weight, low)[0]
    page.line([x_ref, x_ref], [top - 8, floor], _GREY, 1.2, (0, (1, 2)))
    words = f"reference mix: {_pct(weight)} "
    words += _fit(right, 260 - _width(words, _SMALL), _SMALL)
    half = _width(words, _SMALL) / 2
    page.text(max(x0 + 46 + half, min(page.width - _EDGE - half, x_ref)), top - 20, words, _SMALL, align="center")
    clear: list[tuple[float, float]] = []
    for p, (colour, _, dash) in zip(periods, styles, strict=True):
        start, end = at(Fraction(0), p.rates[left]), at(Fraction(1), p.rates[right])
        page.line((start[0], end[0]), (start[1], end[1]), colour, 2.6, dash)
        clear += [(start[0] + (end[0] - start[0]) * n / 120, start[1] + (end[1] - start[1]) * n / 120) for n in range(121)]
    for x, group, sign, align in ((x0, left, -1, "right"), (x1, right, 1, "left")):
        wanted = [at(Fraction(0), p.rates[group])[1] for p in periods]
        for p, (colour, _, _), y0, y in zip(periods, styles, wanted, _spread(wanted, 20, top, floor), strict=True):
            if abs(y - y0) > 1:
                page.line([x + sign * 2, x + sign * 7], [y0, y], colour, 0.9)
            page.text(x + sign * 10, y, _pct(p.rates[group]), bold=True, colour=_DARK[colour], align=align)
            if group == right:
                page.text(x + 66, y, _fit(p.name, page.width - _EDGE - x - 66), colour=_DARK[colour], align=align)
    for x, group, words, align in ((x0, left, "all ", "left"), (x1, right, "all ", "right")):
        page.text(x - (30 if align == "left" else -30), floor + 23, words + _fit(group, 230), align=align)
    _points(page, periods, styles, [[at(p.shares[right], p.observed), at(weight, p.standardised)] for p in periods], clear,
            (x0 + 4, top, x1 + 60, floor - 4))  # fmt: skip
    page.y = floor + 38
    page.lines(
        f"x: share of {_said(right, 32)} in the assessed requests. Hollow: standardised, at the reference mix.", _SMALL, colour=_GREY
    )
    return page.finish(_mix_alt(title, periods, reference))


def _points(page: _Page, periods: tuple[_Period, _Period], styles: Sequence[tuple[str, str, Any]],
            spots: Sequence[Sequence[tuple[float, float]]], clear: list[tuple[float, float]],
            within: tuple[float, float, float, float]) -> None:  # fmt: skip
    """The observed and the standardised rate of each period, and the arrows from one to the next."""
    a, b = periods
    labels: list[tuple[tuple[float, float], str, bool, str, int]] = []
    path = [(spots[0][0], spots[0][1], "mix", a.standardised - a.observed), (spots[0][1], spots[1][1], "rates", b.standardised - a.standardised),
            (spots[1][1], spots[1][0], "mix", b.observed - b.standardised)]  # fmt: skip
    lean = 1 if a.standardised >= b.standardised else -1  # the after line lies below, and its labels with it
    for step, (start, end, word, change) in enumerate(path):
        span = math.dist(start, end)
        if not change:
            continue
        side = lean if step == 2 else -lean
        bend = min(60.0, span * 0.22) * side if word == "mix" else 0.0
        control = (
            (start[0] + end[0]) / 2 - bend * (end[1] - start[1]) / max(span, 1) * (1 if end[0] >= start[0] else -1),
            max(within[1], min(within[3], (start[1] + end[1]) / 2 + bend * abs(end[0] - start[0]) / max(span, 1))),
        )
        curve = [_bezier(start, control, end, t / 150) for t in range(151)]
        inner = [p for p in curve if min(math.dist(p, start), math.dist(p, end)) > 11]
        if len(inner) > 3 and span > 30:
            page.arrow((inner[0], control, inner[-1]) if bend else (inner[0], inner[-1]))
        clear += curve
        labels.append(
            (_bezier(start, control, end, (0.35, 0.5, 0.65)[step]), f"{word} {_pts(change)}", False, _INK, 0 if word == "rates" else side)
        )
    marks = []
    for p, (colour, marker, _), (observed, standardised), side in zip(periods, styles, spots, (-lean, lean), strict=True):
        if math.dist(observed, standardised) >= 1:
            page.mark(*standardised, marker, colour, 14, hollow=True)
            marks.append((standardised, f"standardised {_pct(p.standardised)}", True, _DARK[colour], side))
        page.mark(*observed, marker, colour, 13)
        marks.append((observed, f"observed {_pct(p.observed)}", True, _DARK[colour], side))
    for (x, y), *_ in marks:
        clear += [(x + dx, y + dy) for dx in (-10, 0, 10) for dy in (-10, 0, 10)]
    for (x, y), words, bold, colour, side in [*labels, *marks]:
        page.place(x, y, words, clear, _BODY if bold else _SMALL, bold=bold, colour=colour, lean=side, within=within)


def _bezier(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float], t: float) -> tuple[float, float]:
    u, v, w = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return u * p[0] + v * q[0] + w * r[0], u * p[1] + v * q[1] + w * r[1]


def _dumbbells(periods: tuple[_Period, _Period], reference: Reference) -> _Page:
    """A row a group: its rate before and after on one axis, marks as large as its share; then the two rates of the whole."""
    a, b = periods
    page = _Page(860, _mix_title(a, b))
    columns = (610.0, 755.0, 840.0)  # right ends of the table's columns
    x0, x1 = 246.0, 456.0

    def at(rate: Fraction) -> float:
        return x0 + (x1 - x0) * float(rate)

    head, step = page.y + 10, 34.0
    rows = [*_table(page, head, columns, periods, reference), ("all, observed", a.observed, b.observed, ()),
            ("all, at the reference mix", a.standardised, b.standardised, ())]  # fmt: skip
    bottom = head + 26 + step * len(rows) + 10
    for tick in (Fraction(0), Fraction(1, 2), Fraction(1)):
        page.text(at(tick), head, _pct(tick), _SMALL, colour=_GREY, align="center")
        page.line([at(tick)] * 2, [head + 12, bottom - 14], _FAINT)
    for n, (name, first, second, rest) in enumerate(rows):
        whole = n >= len(a.rates)
        y = head + 30 + step * n + (10 if whole else 0)
        if n == len(a.rates):
            page.line([_EDGE, columns[-1]], [y - step / 2 - 5] * 2, _GREY)
        page.text(_EDGE, y, _fit(name, x0 - 20 - _EDGE, bold=whole), bold=whole)
        for right, words in zip(columns, (" \u2192 ".join(_pair(first, second)), *rest), strict=False):
            page.text(right, y, words, bold=whole, align="right")
        sizes = (
            ([17.0, 9.0] if abs(at(first) - at(second)) < 8 else [12.0, 12.0])
            if whole
            else [max(5.0, 26 * math.sqrt(p.shares[name])) for p in periods]
        )
        marks = sorted(zip((first, second), "os", (_BLUE, _VERMILLION), sizes, strict=True), key=lambda mark: -mark[3])
        page.line([at(first), at(second)], [y] * 2, _INK, 1.6)
        for rate, marker, colour, size in marks:
            page.mark(at(rate), y, marker, colour, size, hollow=n == len(rows) - 1)
    page.y = bottom
    names = [_fit(p.name, 160, _SMALL) for p in periods]
    page.lines(f"Circle: {names[0]}. Square: {names[1]}. A mark's area is the group's share of the assessed requests. Hollow: standardised.",
               _SMALL, colour=_GREY)  # fmt: skip
    return page.finish(_mix_alt(page.title, periods, reference))


def _table(page: _Page, y: float, columns: Sequence[float], periods: Sequence[_Period],
           reference: Reference) -> list[tuple[str, Fraction, Fraction, tuple[str, str]]]:  # fmt: skip
    """The head of a table of groups, and its rows: name, the two rates, the two shares and the weight in words."""
    for right, words in zip(columns, ("pass rate", "share of requests", "reference"), strict=True):
        page.text(right, y, words, _SMALL, colour=_GREY, align="right")
    a, b = periods
    return [(g, a.rates[g], b.rates[g], (" \u2192 ".join(_pair(a.shares[g], b.shares[g])), _pct(reference.weights[g]))) for g in a.rates]


def _areas(periods: tuple[_Period, _Period], reference: Reference) -> _Page:
    """The same columns three times: each period's own widths, then the reference's."""
    a, b = periods
    panels = [(p, p.shares, "own mix", p.observed) for p in periods]
    panels += [(p, reference.weights, "reference mix", p.standardised) for p in periods if p is b or p.shares != dict(reference.weights)]
    if (a.observed, b.observed) == (a.standardised, b.standardised):
        title = f"The rate {_moves(a.observed, b.observed)}, at its own mix and at the reference mix alike"
    else:
        words = f"{_pct(b.standardised)} at the reference mix, {_pct(b.observed)} at its own"
        title = f"{_said(b.name, 24)} passes {words}; {_said(a.name, 24)} {_pct(a.standardised)} and {_pct(a.observed)}"
    across = 3 if len(panels) == 3 else 2
    page = _Page(90 + (270.0 if across == 3 else 380.0) * across, title)
    wide, tall = 200.0 if across == 3 else 300.0, 230.0
    named = len(a.rates) <= 3 and all(_width(_drawable(plain(g)), _SMALL, bold=True) <= (wide + 60) / len(a.rates) - 18 for g in a.rates)
    deep = tall + 46 + (86 if named else 52)
    for n, (period, shares, mix, rate) in enumerate(panels):
        left, colour = _EDGE + 56 + (wide + (70 if across == 3 else 80)) * (n % across), _BLUE if period is a else _VERMILLION
        head = page.y + deep * (n // across)
        top = head + 46
        for tick in (0, 1, 2) if n % across == 0 else ():
            page.text(left - 16, top + tall * (1 - tick / 2), f"{50 * tick}%", _SMALL, colour=_GREY, align="right")
        page.text(left, head + 8, _fit(period.name, wide + 40, bold=True), bold=True, colour=_DARK[colour])
        page.text(left, head + 26, mix, _SMALL)
        _columns(page, period, shares, (left, top, wide, tall), colour, named)
        height = top + tall * (1 - float(rate))
        page.line([left - 4, left + wide + 4], [height] * 2, _INK, 2.4, (0, (4, 2)))
        page.text(left + wide + 8, height, _pct(rate), bold=True)
    page.y += deep * math.ceil(len(panels) / across)
    if not named:
        columns = [page.width - _EDGE - right for right in (230, 85, 0)]
        for n, (group, first, second, rest) in enumerate(_table(page, page.y, columns, periods, reference), 1):
            y = page.y + 2 + 20 * n
            page.text(_EDGE, y, str(n), _SMALL, bold=True)
            page.text(_EDGE + 26, y, _fit(group, columns[0] - 130 - _EDGE - 26, _SMALL), _SMALL)
            for right, words in zip(columns, (" \u2192 ".join(_pair(first, second)), *rest), strict=True):
                page.text(right, y, words, _SMALL, align="right")
        page.y += 30 + 20 * len(a.rates)
    page.lines("Width: share of the requests. Height: pass rate. Dashed line: the area, which is the pass rate of the whole.", _SMALL,
               colour=_GREY)  # fmt: skip
    return page.finish(_mix_alt(title, periods, reference))


def _columns(page: _Page, period: _Period, shares: Mapping[str, Fraction], place: tuple[float, float, float, float], colour: str,
             named: bool) -> None:  # fmt: skip
    left, top, wide, tall = place
    floor, x, middles = top + tall, left, []
    page.line([left, left], [top, floor], _GREY)
    for n, (group, rate) in enumerate(period.rates.items()):
        w, h = wide * float(shares[group]), tall * float(rate)
        middles.append(x + w / 2)
        if w and h:
            page.boxes([(x, floor - h, w, h)], fill="white" if n % 2 else colour, edge=colour, width=1.4, hatch="///" if n % 2 else "")
        x += w
    page.line([left, left + wide], [floor, floor], _INK, 1.2)
    most = (wide + 60) / len(period.rates) if named else 20.0
    words = {g: [_fit(g, most - 18, _SMALL, bold=True), f"{_pct(rate)} pass", f"{_pct(shares[g])} share"] for g, rate in period.rates.items()}
    slot = min(most, max(_width(word, _SMALL, bold=True) for three in words.values() for word in three) + 12) if named else most
    outer = 30 if named else 24
    for n, (group, x, mid) in enumerate(
        zip(period.rates, _spread(middles, slot, left - outer + slot / 2, left + wide + outer - slot / 2), middles, strict=True)
    ):
        page.line([mid, mid, x], [floor, floor + 5, floor + 14], _GREY, 0.9)
        if named:
            for line, word in enumerate(words[group]):
                page.text(x, floor + 24 + 17 * line, word, _SMALL, bold=not line, align="center")
        else:
            page.text(x, floor + 24, str(n + 1), _SMALL, bold=True, align="center")


# --- intervals --------------------------------------------------------------------------------------------------------


def _check_row(row: Estimate, least: int) -> None:
    """Refuse what would be drawn off the axis, and a row that says nothing."""
    exact = [number for number in (row.point, *(row.missing or ())) if number is not None]
    ends = [end for end in (row.low, row.high) if end is not None]
    ordered = all(list(pair) == sorted(pair) for pair in (ends, row.missing or ()))
    inside = all(least <= number <= 1 for number in (*exact, *ends))  # a nan is nowhere
    if not all(map(is_exact, exact)) or len(ends) == 1 or not ordered or not inside:
        raise InputError(
            f"{quote(row.name)} with {listing([str(number) for number in (*exact, *ends)]) or 'half an interval'}",
            f"an exact point, low <= high, both or neither, all from {least} to 1",
            "correct the row, or draw a difference as one",
        )
    if not (ends or row.note or row.missing):
        raise InputError(f"{quote(row.name)} without an interval or a note", "one of them", "say in the note why there is no interval")


def _signed(number: Fraction | float, least: int) -> str:
    words = f"{number:.3f}" if isinstance(number, float) else decimal(number)
    return ("+" if least and number > 0 else "") + words.replace("-", "\u2212")


def _intervals(rows: Sequence[Estimate], title: str, unit: str, least: int) -> _Page:
    """A row a count: its name, its interval on the shared axis, and the numbers."""
    page = _Page(800, title)
    page.lines(unit, _SMALL, colour=_GREY)
    x0, x1, right = 226.0, 496.0, 520.0

    def at(number: Fraction | float) -> float:
        return x0 + (x1 - x0) * (float(number) - least) / (1 - least)

    told, details = [], []
    for row in rows:
        value = "" if row.point is None else _signed(Fraction(row.point), least)
        ends = "" if row.low is None or row.high is None else f"({_signed(row.low, least)} to {_signed(row.high, least)})"
        cases = f"worst to best case: {' to '.join(_signed(Fraction(case), least) for case in row.missing)}" if row.missing else ""
        parts = [plain(part) for part in (f"{value} {ends}".strip(), cases, row.note) if part]
        details.append([_fit(line, 260, _SMALL) for part in parts for line in _wrap(part, 260, _SMALL)])
        told.append(f"{_said(row.name)}: " + ", ".join([plain(row.counts), *parts]))
    steps = [18.0 * (1 + len(lines)) + 12 for lines in details]
    head, bottom = page.y + 20, page.y + 40 + sum(steps)
    for n in range(5):
        tick = least + Fraction(n * (1 - least), 4)
        page.text(at(tick), head, _signed(tick, least).rstrip("0").rstrip("."), _SMALL, colour=_GREY, align="center")
        page.line([at(tick)] * 2, [head + 12, bottom], _INK if least and not tick else _FAINT)
    page.y = head + 20
    for row, lines, step in zip(rows, details, steps, strict=True):
        y = page.y + (step - 12) / 2
        page.text(_EDGE, y, _fit(row.name, x0 - 24 - _EDGE, bold=True), bold=True)
        if row.missing:
            low, high = map(at, row.missing)
            page.boxes([(low, y - 10, high - low, 20)], fill="white", edge=_GREY, width=1.4, over=1.6)
        if row.low is not None and row.high is not None:
            page.curve([at(row.low), at(row.high)], [y, y], color=_BLUE, linewidth=2.6 * 0.75, marker="|", markersize=12 * 0.75,
                       markeredgewidth=2.6 * 0.75, zorder=2, solid_capstyle="butt")  # fmt: skip
        if row.point is not None:
            page.mark(at(row.point), y, "o", _BLUE, 8)
        page.text(right, page.y + 7, _fit(row.counts, 260, bold=True), bold=True)
        for n, line in enumerate(lines, 1):
            page.text(right, page.y + 7 + 18 * n, line, _SMALL)
        page.y += step
    page.y = bottom + 8
    key = {"Dot: what was counted.": any(row.point is not None for row in rows),
           "Line: its interval.": any(row.low is not None for row in rows),
           "Open bar: from the worst to the best case over what is missing.": any(row.missing for row in rows)}  # fmt: skip
    page.lines(" ".join(words for words, drawn in key.items() if drawn), _SMALL, colour=_GREY)
    return page.finish(f"{title}. {unit}: " + "; ".join(told) + ".")
