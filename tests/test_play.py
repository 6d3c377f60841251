"""What a reader moves: each step by the kit's own functions, one message a step, and no widget in what is committed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from evalkit import (
    CoverageError,
    InputError,
    MixError,
    Reference,
    Tally,
    cell_mean,
    fail_closed,
    flip_mix,
    observed_mix,
    play,
    rank,
    rank_key,
    read_campaign,
    read_reference,
    read_tallies,
    standardise,
)  # fmt: skip
from evalkit.records import bundled

ipywidgets = pytest.importorskip("ipywidgets", reason="ipywidgets comes with the lab extra")

HOSTILE = "<script>alert(1)</script> $x$ **b** \u202e"


@pytest.fixture(autouse=True)
def _no_notebook_server(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def weeks():
    before, after = read_tallies(bundled("fixtures/break_even.csv")).values()
    return before, after, Reference("week 1", "g", observed_mix(before), "v")


def plays():
    return [play.flip(read_campaign()), play.dial(read_campaign()), play.mix(*weeks())]


def parts(widget, kind):
    """The widgets of a kind inside a widget."""
    found = [widget] if isinstance(widget, kind) else []
    return found + [one for child in getattr(widget, "children", ()) for one in parts(child, kind)]


def page_of(widget):
    """The words that the handles change: the last child."""
    return widget.children[-1]


def read(page):
    """The words of a page, one blank between."""
    return re.sub(r"(<[^>]*>|\s)+", " ", page.value).strip()


def button(widget, words):
    (found,) = [one for one in parts(widget, ipywidgets.ToggleButton) if one.tooltip.startswith(words)]
    return found


# --- flip


def test_every_cell_is_a_button_that_says_in_words_what_it_is():
    data = read_campaign()
    buttons = parts(play.flip(data).widget(), ipywidgets.ToggleButton)
    said = {one.tooltip: (one.value, one.description) for one in buttons}
    assert len(said) == len(buttons) == 24
    for candidate in ("CLAUDE", "MERGE"):
        for instance in data.instances:
            for repetition in data.repetitions:
                passed = data.outcome(candidate, instance, repetition) == "pass"
                words = f"{candidate}, {instance}, repetition {repetition}: {'passed' if passed else 'failed'}"
                assert said[words] == (passed, "T" if passed else "F")


def test_flips_choose_as_the_rank_key_of_the_flipped_table_does_and_the_moment_of_inversion_is_marked(grid):
    rows = {"A": "TT FF", "B": "TF FF"}
    widget = play.flip(grid(rows), ("A", "B")).widget()
    page, marks = page_of(widget), []
    for words, cells in (
        ("B, i2, repetition 0", "TF TF"),
        ("B, i2, repetition 1", "TF TT"),
        ("B, i2, repetition 1", "TF TF"),
        ("A, i1, repetition 0", "TF TF"),
    ):
        button(widget, words).value ^= True
        rows = {"A": "FT FF" if words.startswith("A") else "TT FF", "B": cells}
        flipped = grid(rows)
        first = []
        for key in ([cell_mean], [fail_closed, cell_mean]):
            places = rank({name: rank_key(flipped.of(name), key) for name in rows})
            first.append([place.candidate for place in places if place.place == 1])
        said = read(page)
        marks.append(said.split(".")[0])
        for key, names in zip(("By cell_mean", "By fail_closed, then cell_mean"), first, strict=True):
            assert f"{key}: {' and '.join(names)} {'is chosen' if len(names) == 1 else 'tie'}." in said
        assert ("alike" in marks[-1]) == (first[0] == first[1])
    assert marks == ["They now choose differently", "They now choose alike", "They now choose differently", "They now choose alike"]


def test_the_published_campaign_starts_with_two_winners_and_one_flip_ends_that():
    shown = play.flip(read_campaign())
    assert shown.still.text.splitlines()[:2] == [
        "They choose differently.",
        "By cell_mean: MERGE is chosen. By fail_closed, then cell_mean: CLAUDE is chosen.",
    ]
    widget = shown.widget()
    one = button(widget, "MERGE, i2, repetition 1")
    one.value = True
    assert (one.description, one.tooltip) == ("T", "MERGE, i2, repetition 1: passed")
    assert read(page_of(widget)).startswith(
        "They now choose alike. By cell_mean: MERGE is chosen. By fail_closed, then cell_mean: MERGE is chosen."
    )
    button(widget, "CLAUDE, i6, repetition 0").value = True
    assert read(page_of(widget)).startswith("They choose alike.")  # no "now": nothing turned with this flip


def test_playing_leaves_the_campaign_as_it_was():
    data = read_campaign()
    before, shown = data.digest, play.flip(data)
    for one in parts(shown.widget(), ipywidgets.ToggleButton):
        one.value = not one.value
    assert read_campaign().codes.tobytes() == data.codes.tobytes()
    assert data.digest == before
    assert read(page_of(shown.widget())).startswith("They choose differently.")


# --- dial


def test_the_dial_says_who_leads_at_every_k_and_when_the_lead_passes_on():
    data = read_campaign(bundled("fixtures/four_repetitions.csv"))
    widget = play.dial(data).widget()
    (slider,) = parts(widget, ipywidgets.IntSlider)
    assert (slider.min, slider.max, slider.value) == (1, 4, 1)
    said = []
    for k in (2, 3, 4):
        slider.value = k
        said.append(read(page_of(widget)))
    assert [words.split(".")[0] for words in said] == [
        "At k = 2, LUCKY leads", "At k = 3, STEADY now leads", "At k = 4 (the fail-closed share), STEADY leads",
    ]  # fmt: skip
    assert "1 STEADY 2/5 (0.400)" in said[-1]


def test_one_repetition_has_no_dial_to_turn(grid):
    shown = play.dial(grid({"A": "T T", "B": "T F"}))
    assert shown.still.text.endswith("One repetition: the dial has one setting.")
    assert not parts(shown.widget(), ipywidgets.IntSlider)


# --- mix


def test_the_slider_gives_both_exact_rates_at_every_twentieth_and_marks_where_the_order_turns():
    before, after, reference = weeks()
    widget = play.mix(before, after, reference).widget()
    (slider,) = parts(widget, ipywidgets.IntSlider)
    other, one = before.groups  # routine grew, so that its share is the slider, as it is the x axis of the picture
    assert (slider.min, slider.max, Fraction(slider.value, 20)) == (0, 20, reference.weights[one])
    tie = flip_mix(before, after)
    turned = []
    slider.value = 0
    for step in range(1, 21):
        slider.value = step
        share = Fraction(step, 20)
        first, second = (standardise(tally, {one: share, other: 1 - share}) for tally in (before, after))
        said = read(page_of(widget))
        assert said.startswith(f"At the mix {one} {share}, {other} {1 - share}: week 1 {float(first):.1%}, week 2 {float(second):.1%}; ")
        lead = said.split("; ")[1].split(".")[0]
        assert lead.replace(" now", "") == ("week 1 is ahead" if first > second else "week 2 is ahead" if second > first else "they tie")
        assert ("tie" in lead) == (share == tie[one])
        turned += [step] if " now " in lead else []
    assert turned == [15, 16]
    assert "observed, of assessed requests 64.0% 78.0%" in said
    assert "standardised to week 1 64.0% 42.0%" in said
    assert "they tie at the mix complex 1/4, routine 3/4" in said


def test_the_published_periods_have_no_break_even_and_it_says_so():
    said = play.mix(*read_tallies().values(), read_reference()).still.text
    assert said.startswith("At the mix routine 1/10, complex 9/10: baseline 45.0%, candidate 35.0%; baseline is ahead.")
    assert said.endswith("At every possible mix of these groups baseline passes as often as candidate, or more often.")


# --- every play


def test_a_slider_stands_beside_a_field_with_a_label_since_its_handle_has_none():
    for shown in plays()[1:]:
        (slider,) = parts(shown.widget(), ipywidgets.IntSlider)
        (field,) = parts(shown.widget(), ipywidgets.BoundedIntText)
        assert (field.min, field.max, field.value) == (slider.min, slider.max, slider.value)
        assert len(field.description) > 10


def test_a_step_writes_the_words_once_and_takes_under_a_tenth_of_a_second():
    for shown in plays():
        widget, written = shown.widget(), []
        page_of(widget).observe(written.append, "value")
        handles = parts(widget, ipywidgets.ToggleButton)[:10] or parts(widget, ipywidgets.IntSlider) * 10
        began = time.process_time()
        for handle in handles:
            handle.value = not handle.value if isinstance(handle, ipywidgets.ToggleButton) else handle.min + (handle.value == handle.min)
        assert (time.process_time() - began) / len(handles) < 0.1
        assert len(written) == len(handles)


def test_without_a_notebook_server_a_play_is_words_and_never_a_widget(monkeypatch):
    for shown, again in zip(plays(), plays(), strict=True):
        bundle = shown._repr_mimebundle_()
        assert set(bundle) == {"text/html", "text/plain"}
        assert bundle == again._repr_mimebundle_()
        assert bundle["text/plain"] == repr(shown)
        assert "<table>" in bundle["text/html"]
        assert not re.search("0x|object at|model|Box", repr(shown))


def test_with_a_notebook_server_it_is_a_widget_beside_the_words(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    for shown in plays():
        bundle = shown._repr_mimebundle_()
        assert set(bundle) == {"text/html", "text/plain", play._VIEW}
        assert re.fullmatch("[0-9a-f]{32}", bundle[play._VIEW]["model_id"])
        assert bundle["text/plain"] == repr(shown)


def test_widgets_are_imported_only_where_one_is_built():
    program = "import sys; from evalkit import play, read_campaign; repr(play.flip(read_campaign())._repr_mimebundle_()); print('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_nbconvert_writes_is_the_same_twice_and_holds_no_widget(tmp_path):
    from nbconvert.preprocessors import ExecutePreprocessor
    from nbformat.v4 import new_code_cell, new_notebook

    written = []
    for _ in range(2):
        notebook = new_notebook(cells=[new_code_cell("from evalkit import play, read_campaign\nplay.flip(read_campaign())", id="a")])
        ExecutePreprocessor(record_timing=False, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
        written.append(json.dumps(notebook["cells"]))
        assert "widgets" not in notebook["metadata"]
    assert written[0] == written[1]
    assert "They choose differently." in written[0]
    assert "widget-view" not in written[0]


def test_strangers_names_are_shown_as_text():
    codes = read_campaign().codes[:, :2]
    from evalkit import Campaign

    data = Campaign((HOSTILE, "B"), (HOSTILE, *read_campaign().instances[1:]), (HOSTILE, "2"), codes)
    tallies = [Tally.of(period, {HOSTILE: (1, 2), "other": (n, 3)}) for n, period in enumerate((HOSTILE, "after"))]
    half = {HOSTILE: Fraction(1, 2), "other": Fraction(1, 2)}
    for shown in (play.flip(data, data.candidates), play.dial(data), play.mix(*tallies, Reference(HOSTILE, "g", half, "v"))):
        pages = [shown.still.html, *(one.value for one in parts(shown.widget(), ipywidgets.HTML))]
        assert not any("<script" in page or "\u202e" in page for page in pages)
        for one in parts(shown.widget(), (ipywidgets.BoundedIntText, ipywidgets.ToggleButton)):
            assert not getattr(one, "description_allow_html", False)
            assert "\u202e" not in one.description + (one.tooltip or "")


# --- refusals


def test_what_cannot_be_played_with_is_refused(grid):
    data = read_campaign()
    for names in (("CLAUDE", "X"), ("CLAUDE", "CLAUDE"), ()):
        with pytest.raises(InputError):
            play.flip(data, names)
    with pytest.raises(InputError, match="98 cells"):
        play.flip(grid({"A": "T " * 49, "B": "F " * 49}), ("A", "B"))
    missing = grid({"A": "TT TF", "B": "T. TT"})
    with pytest.raises(CoverageError):
        play.flip(missing, ("A", "B"))
    with pytest.raises(CoverageError):
        play.dial(missing)


def test_a_mix_without_two_groups_or_with_another_reference_is_refused():
    before, after, reference = weeks()
    three = [Tally.of(period, dict.fromkeys("abc", (1, 2))) for period in ("x", "y")]
    with pytest.raises(MixError, match="two groups"):
        play.mix(*three, Reference("r", "g", {g: Fraction(1, 3) for g in "abc"}, "v"))
    with pytest.raises(MixError, match="reference"):
        play.mix(before, after, Reference("r", "g", {"complex": Fraction(1)}, "v"))
    with pytest.raises(CoverageError):
        play.mix(before, Tally.of("late", {"complex": (1, 2, 3), "routine": (1, 2)}), reference)
