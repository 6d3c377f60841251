"""What a reader moves by hand: flip a cell, turn the dial, slide the mix. The kit's own functions say what follows.

Where a notebook server runs the kernel, a play is shown as widgets (ipywidgets, imported then); on any other page, and in what
nbconvert, papermill and nbval write, it is the sentence and the table that its widgets start with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from html import escape
from importlib.util import find_spec
from typing import Any

from ._exact import as_text, percent
from .campaign import FAIL, PASS, Campaign, require_complete
from .decide import rank, rank_key
from .errors import InputError, listing, plain
from .lesson import ranking
from .reductions import Reduction, cell_mean, fail_closed, name_of, pass_hat
from .reweighting import Reference, Tally, compare, flip_mix, observed_mix, standardise
from .show import Shown, dominance, joined, rates, sentence

__all__ = ["Play", "dial", "flip", "mix"]

_VIEW = "application/vnd.jupyter.widget-view+json"
_MOST_BUTTONS = 96
_STEPS = 20  # of the mix


class Play:
    """A sentence and a table that handles change; ``widget()`` builds the handles, for any page that has a kernel."""

    def __init__(self, still: Shown, widget: Callable[[], Any]) -> None:
        self.still, self.widget = still, widget

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        bundle = self.still._repr_mimebundle_()
        # A notebook server names the session of its kernels; nbconvert, papermill and nbval do not, so that what they write holds
        # no widget, whose model id would differ in every run and mean nothing without a kernel.
        if "JPY_SESSION_NAME" in os.environ and find_spec("ipywidgets"):
            bundle[_VIEW] = self.widget()._repr_mimebundle_()[_VIEW]
        return bundle

    def __repr__(self) -> str:
        return self.still.text


def flip(
    campaign: Campaign,
    candidates: Sequence[str] = ("CLAUDE", "MERGE"),
    *,
    picker: Sequence[Reduction] = (cell_mean,),
    key: Sequence[Reduction] = (fail_closed, cell_mean),
) -> Play:
    """Flip cells between pass and fail, and see whom the picker and whom the rule's key choose.

    Raises: InputError for an unknown or repeated candidate, or more than 96 cells; CoverageError if a cell is missing.
    """
    for name in candidates:
        require_complete(campaign.of(name))
    cells = len(candidates) * len(campaign.instances) * len(campaign.repetitions)
    if not candidates or len(set(candidates)) < len(candidates) or cells > _MOST_BUTTONS:
        raise InputError(
            f"{cells} cells of {listing(candidates) or 'nobody'}",
            f"up to {_MOST_BUTTONS} cells, each candidate once",
            "name fewer candidates",
        )
    start = campaign.codes[:, [campaign.candidates.index(name) for name in candidates]]

    def said(codes: Any, alike: bool | None = None) -> tuple[Shown, bool]:
        flipped = Campaign(tuple(candidates), campaign.instances, campaign.repetitions, codes.copy())
        first = [_firsts(flipped, picker), _firsts(flipped, key)]
        now = " now" if alike is not None and alike != (first[0] == first[1]) else ""
        mark = f"They{now} choose alike." if first[0] == first[1] else f"They{now} choose differently."
        words = [f"{_named(picker)}: {_chosen(first[0])}. {_named(key)}: {_chosen(first[1])}."]
        return joined(_marked(mark), sentence(*words), ranking(flipped, *picker), ranking(flipped, *key)), first[0] == first[1]

    def widget() -> Any:
        from ipywidgets import HTML, GridBox, Layout, ToggleButton, VBox

        codes, alike = start.copy(), said(start)[1]
        page = _page(said(start)[0])

        def flipped(where: tuple[int, int, int], what: str, button: Any) -> Callable[[Any], None]:
            def change(event: Any) -> None:
                nonlocal alike
                codes[where] = PASS if event["new"] else FAIL
                button.description, button.tooltip = _letter(event["new"], what)
                shown, alike = said(codes, alike)
                page.value = _left(shown)

            return change

        grids = []
        for c, candidate in enumerate(candidates):
            children = [HTML(f"<b>{escape(plain(candidate))}</b>"), *(_small(name) for name in campaign.instances)]
            for r, repetition in enumerate(campaign.repetitions):
                children.append(_small(f"repetition {repetition}"))
                for i, instance in enumerate(campaign.instances):
                    what = f"{plain(candidate)}, {plain(instance)}, repetition {plain(repetition)}"
                    letter, tooltip = _letter(start[r, c, i] == PASS, what)
                    button = ToggleButton(bool(start[r, c, i] == PASS), description=letter, tooltip=tooltip, layout=Layout(width="40px"))
                    button.observe(flipped((r, c, i), what, button), "value")
                    children.append(button)
            columns = f"110px repeat({len(campaign.instances)}, 46px)"
            grids.append(GridBox(children, layout=Layout(grid_template_columns=columns, overflow="auto", margin="0 0 0.75rem")))
        return VBox([*grids, page])

    return Play(said(start)[0], widget)


def dial(campaign: Campaign) -> Play:
    """Turn k from 1, the cell mean, to the number of repetitions, the fail-closed share, and see who leads under pass^k.

    Raises: CoverageError if a cell is missing.
    """
    last = len(campaign.repetitions)

    def said(k: int, before: int | None = None) -> Shown:
        first = _firsts(campaign, [pass_hat(k)])
        moved = before is not None and _firsts(campaign, [pass_hat(before)]) != first
        ends = {1: " (the cell mean)", last: " (the fail-closed share)"}
        lead = "leads" if len(first) == 1 else "tie for the lead"
        words = f"At k = {k}{ends.get(k, '')}, {' and '.join(map(plain, first))} {'now ' * moved}{lead}."
        return joined(_marked(words), ranking(campaign, pass_hat(k)))

    if last == 1:
        return Play(joined(said(1), sentence("One repetition: the dial has one setting.")), lambda: _page(said(1)))
    return _slider(said, 1, last, 1, "k, repetitions that must all pass")


def mix(before: Tally, after: Tally, reference: Reference) -> Play:
    """Slide the share of the group that grew, of two, in twentieths, and see the rate of both periods at that mix.

    Beside it: the observed and the standardised rates, and the mix at which the periods tie, if there is one.
    Raises: MixError unless both periods have the same two groups, each with an assessed request; CoverageError for unassessed
    requests.
    """
    flip_mix(before, after), standardise(before, reference)  # refuse what has no two lines, or another mix
    other, one = before.groups if observed_mix(after)[before.groups[1]] >= observed_mix(before)[before.groups[1]] else before.groups[::-1]
    comparison = compare(before, after, reference)
    beside = rates(reference, comparison), dominance(comparison)

    def ahead(step: int) -> tuple[Fraction, Fraction, str]:
        weights = {one: Fraction(step, _STEPS), other: 1 - Fraction(step, _STEPS)}
        first, second = standardise(before, weights), standardise(after, weights)
        who = before.period if first > second else after.period if second > first else ""
        return first, second, f"{plain(who)} is{{}} ahead" if who else "they{} tie"

    def said(step: int, was: int | None = None) -> Shown:
        first, second, who = ahead(step)
        moved = was is not None and ahead(was)[2] != who
        share = Fraction(step, _STEPS)
        words = f"At the mix {plain(one)} {as_text(share)}, {plain(other)} {as_text(1 - share)}: "
        words += f"{plain(before.period)} {percent(first)}, {plain(after.period)} {percent(second)}; {who.format(' now' * moved)}."
        return joined(_marked(words), *beside)

    return _slider(said, 0, _STEPS, round(reference.weights[one] * _STEPS), f"share of {plain(one)}, in twentieths")


def _firsts(campaign: Campaign, key: Sequence[Reduction]) -> tuple[str, ...]:
    """Every candidate that shares the first place."""
    places = rank({name: rank_key(campaign.of(name), key) for name in campaign.candidates})
    return tuple(place.candidate for place in places if place.place == 1)


def _named(key: Sequence[Reduction]) -> str:
    return "By " + ", then ".join(map(name_of, key))


def _chosen(first: Sequence[str]) -> str:
    return " and ".join(map(plain, first)) + (" is chosen" if len(first) == 1 else " tie")


def _letter(passed: bool, what: str) -> tuple[str, str]:
    """A button's letter, and its words for who cannot see the grid."""
    return ("T", f"{what}: passed") if passed else ("F", f"{what}: failed")


def _marked(words: str) -> Shown:
    return Shown(f"<p><strong>{escape(words)}</strong></p>", words)


def _left(shown: Shown) -> str:
    """JupyterLab centres the tables of a widget, and those of an output not."""
    return shown.html.replace("<table>", '<table style="margin-left:0">')


def _page(shown: Shown) -> Any:
    from ipywidgets import HTML, Layout

    page = HTML(_left(shown), layout=Layout(width="max-content", max_width="100%"))
    page.add_class("jp-RenderedHTMLCommon")  # the look of JupyterLab's own tables
    return page


def _small(name: str) -> Any:
    from ipywidgets import HTML

    return HTML(f'<span title="{escape(plain(name))}">{escape(plain(name)[:14])}</span>')


def _slider(said: Callable[..., Shown], low: int, high: int, start: int, words: str) -> Play:
    """A whole-number slider above the words that it changes, and a field of the same number.

    The field has a label that a screen reader says; the slider's handle has none.
    """

    def widget() -> Any:
        from ipywidgets import BoundedIntText, HBox, IntSlider, Layout, VBox, jslink

        page = _page(said(start))
        slider = IntSlider(start, low, high, readout=False, layout=Layout(width="16rem"))
        field = BoundedIntText(
            start, max=high, min=low, description=words, style={"description_width": "initial"}, layout=Layout(width="max-content")
        )

        def change(event: Any) -> None:
            page.value = _left(said(event["new"], event["old"]))

        jslink((slider, "value"), (field, "value"))
        slider.observe(change, "value")
        return VBox([HBox([field, slider], layout=Layout(flex_flow="row wrap")), page])

    return Play(said(start), widget)
