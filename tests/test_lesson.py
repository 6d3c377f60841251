"""What a tutorial says back: predictions, second routes, self-checks that never raise, and the copy for a class."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from evalkit import EvalkitError, Tally, cell_mean, decide, fail_closed, pass_at, read_campaign, read_rule, read_tallies
from evalkit import lesson as lesson_module
from evalkit.lesson import check, class_copy, expect, gate, predict, ranking, rates, reveal, source
from evalkit.records import bundled


class Hostile:
    """Compares with an error, and shows with one of the reader's choosing."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


def test_a_guess_is_optional_and_another_word_is_named():
    assert "No guess yet" in predict(None, ["up", "down"]).text
    assert predict("sideways", ["up", "down"]).text == "'sideways' is not one of the answers: 'up' or 'down'."
    assert predict("up", ["up", "down"]).text == "Your guess: up. Run the next cells to see."


def test_the_reveal_speaks_to_the_guess():
    assert reveal(None, "up", "45% to 75%").text == "The answer is up: 45% to 75%."
    assert reveal("up", "up", "45% to 75%").text == "You guessed up, and so it is: 45% to 75%."
    assert reveal("down", "up", "45% to 75%").text == "You guessed down; the answer is up: 45% to 75%."


def test_two_routes_that_differ_stop_the_notebook():
    with pytest.raises(EvalkitError, match="the two routes must agree"):
        expect("cells", 6, 5)
    with pytest.raises(EvalkitError, match="the two routes must agree"):
        expect("rate", Fraction(1, 2), 0.5)


@pytest.mark.parametrize(
    "answer",
    [
        True,
        False,
        [],
        {},
        "1/6",
        "",
        float("nan"),
        np.float64(0.5),
        np.bool_(True),
        object(),
        Hostile(),
        Fraction(5, 1),
        -1,
        10**400,
        print,
    ],
)
@pytest.mark.parametrize("wanted", [Fraction(1, 6), 1, "promote"])
def test_a_wrong_answer_never_raises_and_never_passes(answer, wanted):
    said = check(answer, wanted, "Count again.")
    assert "✓" not in said.text
    assert said.html


@pytest.mark.parametrize(
    ("answer", "wanted"), [(Fraction(2, 12), Fraction(1, 6)), (np.int64(2), 2), (2, Fraction(2)), ("promote", "promote")]
)
def test_the_right_answer_is_met_in_every_exact_form(answer, wanted):
    assert check(answer, wanted, "Count again.").text.startswith("✓ Yes")


def test_a_float_is_asked_for_as_a_fraction_even_where_it_is_near():
    assert "is a float" in check(1 / 6, Fraction(1, 6), "").text


def test_a_strangers_answer_is_shown_as_text():
    assert "<script>" not in check("<script>", "promote", "").html


def test_a_ranking_counts_beside_the_place_and_lets_ties_share_it():
    shown = ranking(read_campaign(), fail_closed).text.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["1", "CLAUDE"], ["2", "BASELINE"], ["2", "MERGE"]]
    assert "2 of 6 instances" in shown[1]
    assert "6 of 12 cells (0.500)" in ranking(read_campaign(), cell_mean).text
    assert "5/6 (0.833)" in ranking(read_campaign(), pass_at(2)).text


def test_rates_show_every_count_with_its_denominator():
    text = rates(read_tallies()).text
    for words in ("90 of 100 = 90.0%", "360 of 900 = 40.0%", "450 of 1000 = 45.0%", "750 of 1000 = 75.0%"):
        assert words in text


def test_rates_escape_a_strangers_group():
    tally = Tally.of("<b>", {"<script>alert(1)</script>": (1, 2)})
    assert "<script>" not in rates({"<b>": tally}).html
    assert "<b>" not in rates({"<b>": tally}).html


def test_the_gate_names_whoever_is_incomplete():
    decision = decide(read_campaign(bundled("fixtures/one_timeout.csv")), read_rule(), incumbent="BASELINE")
    text = gate(decision).text
    assert text.startswith("UNDECIDED")
    assert "CLAUDE is not ranked: 11 of 12 cells (1 timeout)." in text


def test_the_source_is_the_function_that_runs():
    assert "instances.passed == instances.planned" in source(fail_closed).text
    assert "&quot;&quot;&quot;" in source(fail_closed).html


def test_a_class_copy_keeps_questions_and_drops_answers():
    cells = [
        {"cell_type": "markdown", "metadata": {"tags": ["question"]}, "source": ["Why?"]},
        {
            "cell_type": "code",
            "metadata": {"tags": ["predict"]},
            "source": ['guess = "up"  # a word\n', "predict(guess)"],
            "outputs": [1],
            "execution_count": 3,
        },
        {
            "cell_type": "code",
            "metadata": {"tags": ["exercise"]},
            "source": ["answer_1 = Fraction(1, 6)"],
            "outputs": [1],
            "execution_count": 4,
        },
        {"cell_type": "markdown", "metadata": {"tags": ["solution"]}, "source": ["1/6"]},
    ]
    copy = json.loads(class_copy(json.dumps({"cells": cells, "metadata": {}})))["cells"]
    assert ["".join(cell["source"]) for cell in copy] == ["Why?", "guess = None  # a word\npredict(guess)", "answer_1 = None"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in copy[1:]] == [([], None)] * 2


def test_every_public_name_of_lesson_exists():
    assert all(hasattr(lesson_module, name) for name in lesson_module.__all__)
