"""The border: text and int in, Fraction out."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit import InputError
from evalkit._exact import as_text, count, decimal, in_order, is_exact, measurement, natural, percent, percents, points, rational


def short(value):
    return ascii(value)[:24]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1/10", Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("2/20", Fraction(1, 10)),
        ("-3", Fraction(-3)),
        ("+3", Fraction(3)),
        (7, Fraction(7)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("999999999999999999/1", Fraction(999999999999999999)),
    ],
)
def test_rational_takes_whole_numbers_and_ascii_text(text, number):
    assert rational(text) == number


def test_ten_tenths_as_text_are_one_and_as_floats_are_not():
    assert sum([rational("0.1")] * 10) == 1
    assert sum([Fraction(0.1)] * 10) != 1


@pytest.mark.parametrize(
    "value",
    [0.1, float("nan"), float("inf"), True, None, np.int64(1), np.float64(0.5), Decimal("0.1"), b"1", [1], "", " 1", "1 ", "1 /10", "1/ 10", ".1", "1.",
     "1e-1", "1_0", "0x1", "٣", "１", "½", "1/10/10", "--1", "1/-2", "nan", "inf", "1\n", "1" * 19, "9" * 5000, "1." + "1" * 19, Fraction(np.int64(1), np.int64(2))],
    ids=short,
)  # fmt: skip
def test_rational_refuses_what_is_not_exact_or_not_ascii(value):
    with pytest.raises(InputError):
        rational(value)


def test_a_fraction_of_numpy_integers_is_not_exact_although_it_compares_equal():
    assert Fraction(np.int64(1), np.int64(2)) == Fraction(1, 2)
    assert not is_exact(Fraction(np.int64(1), np.int64(2)))
    assert is_exact(Fraction(int(np.int64(1)), 2))


def test_a_zero_denominator_is_refused_by_name():
    with pytest.raises(InputError, match="denominator"):
        rational("1/0")


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("2.5e-1", Fraction(1, 4)), (".5", Fraction(1, 2)), ("5.", 5), ("-1E+2", -100)])
def test_a_measurement_is_the_number_that_its_decimal_text_says(text, number):
    assert measurement(text) == number


@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e308", "nan", "NaN", "inf", "Infinity", "", " 1", "1,5", "1_000", "٣", "1/2", "0x1", "9" * 5000, "1e9999", "e5", "."],
    ids=short,
)
def test_a_measurement_that_is_no_finite_decimal_is_refused(text):
    with pytest.raises(InputError):
        measurement(text)


def test_a_score_is_its_decimal_text_so_ten_tenths_in_any_order_tie():
    texts = ["0.1", "0.2", "0.3"]
    assert sum(map(measurement, texts)) == sum(map(measurement, reversed(texts))) == Fraction(3, 5)
    one, two, three = map(float, texts)
    assert one + two + three != three + two + one


@pytest.mark.parametrize("value", [0, 1, "0", "007", 10**18 - 1, "9" * 18])
def test_a_count_is_digits(value):
    assert count(value) == int(value)


@pytest.mark.parametrize(
    "value", [-1, "-1", "+1", "1.0", 1.0, True, None, "", " ", "1e3", "٣", "1,000", 10**18, "9" * 19, np.int64(3), "1 "], ids=short
)
def test_a_count_that_is_not_digits_is_refused(value):
    with pytest.raises(InputError):
        count(value)


def test_a_count_too_long_to_write_out_is_refused_in_words():
    with pytest.raises(InputError, match="a whole number of 16610 bits"):
        count(10**5000)


def test_the_text_of_a_number_reads_back_as_the_same_number():
    for number in (Fraction(5, 12), Fraction(-1, 10), 0, 7):
        assert rational(as_text(number)) == number


@pytest.mark.parametrize(
    ("number", "shown"),
    [(Fraction(5, 12), "0.417"), (Fraction(1, 2), "0.500"), (Fraction(-1, 3), "-0.333"), (Fraction(1, 2000), "0.000"), (Fraction(3, 2000), "0.002"), (2, "2.000"), (Fraction(-1, 9999), "0.000")],
)  # fmt: skip
def test_decimals_are_rounded_half_to_even_without_floats_and_never_say_minus_zero(number, shown):
    assert decimal(number) == shown


def test_percentages_and_points_for_reading():
    assert percent(Fraction(9, 20)) == "45.0%"
    assert points(Fraction(2, 5)) == "+40.0"
    assert points(0) == "0.0"
    assert decimal(Fraction(7, 2), 0) == "4"


def test_natural_order_puts_i2_before_i10_and_never_ties_two_names():
    names = ["i10", "i2", "i02", "i", "", "2", "02", "10", "٢", "9" * 5000, "9" * 4999 + "8", "i2a", "i2.10", "i2.9"]
    assert in_order(reversed(names)) == in_order(names)
    assert len({natural(name) for name in names}) == len(names)
    assert in_order(["i10", "i9", "i1"]) == ["i1", "i9", "i10"]


@given(st.lists(st.from_regex(r"(a|b0|a-|)[0-9]{0,20}(x[0-9])?", fullmatch=True), unique=True))
def test_the_short_ways_to_natural_order_end_where_the_long_one_does(names):
    assert in_order(names) == sorted(names, key=natural)


@pytest.mark.parametrize(
    "names", [[f"t-{n:04d}" for n in range(300)], [f"t{n}" for n in range(300)], [*map(str, range(300))], ["t01", "t1", "t2"]]
)
def test_names_that_end_in_one_number_are_in_natural_order(names):
    assert in_order(reversed(names)) == sorted(names, key=natural)


ENDS = ["x", "x1", "x9", "x10", "x" + "1" + "0" * 18, "x" + "2" * 18, "x" + "3" * 19, "x" + "2" * 20, "1" + "0" * 18, "2" * 18]


@given(
    st.lists(st.sampled_from([*ENDS, "", "a", "aa", "a0", "a1b2", "a2b1", "a1b10", "5", "05", "a5"]), min_size=2, max_size=4, unique=True)
)
def test_the_short_ways_to_natural_order_are_natural_order(names):
    assert in_order(names) == sorted(names, key=natural)


@pytest.mark.parametrize(
    "names",
    [
        ["x", "x1"],
        ["a1b10", "a2b1"],
        ["5", "a"],
        ["a", "a0"],
        ["a", "a1"],
        ["x" + "1" + "0" * 18, "x" + "2" * 18],
        ["x" + "2" * 20, "x" + "3" * 19],
    ],
)
def test_an_end_comes_before_a_digit_and_a_digit_before_a_letter(names):
    assert in_order(names) == in_order(names[::-1]) == names


def test_a_measurement_may_be_as_large_as_a_binary_double_and_no_larger():
    assert measurement("9e307") == 9 * Fraction(10) ** 307
    with pytest.raises(InputError):
        measurement("1e308")


def test_a_number_of_five_thousand_digits_is_written_out():
    assert as_text(10**5000) == "1" + "0" * 5000


@pytest.mark.parametrize(("apart", "places"), [(3, 1), (4, 2), (20, 18), (21, 18), (30, 18)])
def test_percentages_take_the_places_that_tell_them_apart_up_to_eighteen(apart, places):
    low = Fraction(9, 20)
    shown = percents(low, low + Fraction(1, 10**apart))
    assert [len(text.partition(".")[2]) - 1 for text in shown] == [places, places]
    assert (shown[0] != shown[1]) == (apart <= 20)
