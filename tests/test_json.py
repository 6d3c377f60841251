"""JSON of harnesses: a key that came twice is seen on the fast road too, which only large files take."""

import json
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit import InputError, read_campaign
from evalkit.sources import _json
from evalkit.sources._json import Twice

texts = st.text(st.sampled_from('":\\ {},\t\nx\u00e9'), max_size=8)


def pairs(value):
    """An object as its pairs, in which a key may come twice."""
    return st.lists(st.tuples(texts, value), max_size=4).map(tuple)


values = st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda v: st.lists(v, max_size=3) | pairs(v), max_leaves=12)


def written(value, blank):
    """JSON text, and how many pairs are in it."""
    if isinstance(value, tuple):
        inner = [(json.dumps(key), *written(item, blank)) for key, item in value]
        return "{" + ",".join(f"{key}{blank()}:{blank()}{text}" for key, text, _ in inner) + "}", sum(n + 1 for *_, n in inner)
    if isinstance(value, list):
        inner = [written(item, blank) for item in value]
        return "[" + ",".join(text for text, _ in inner) + "]", sum(n for _, n in inner)
    return json.dumps(value, ensure_ascii=False), 0


@given(pairs(values), st.integers(0, 2**32))
def test_no_text_has_more_pairs_than_are_counted_and_both_roads_read_the_same(value, seed):
    luck = random.Random(seed)
    text, there = written(value, lambda: luck.choice(["", "", " ", "  ", "\n\t ", " " * 70]))
    counted = _json._keys_at_most(text.encode())
    assert counted >= there
    assert _json._parse(text, counted) == _json._parse(text)
    if there:
        assert _json._parse(text, there) == _json._parse(text)


@pytest.mark.parametrize(
    ("text", "keys"),
    [('{"a": 1, "b": {"c": 2}}', 3), ('{"a" : 1, "b"\n\t: 2}', 2), (r'{"a": "so {\"b\": 1} was said"}', 1), ('{"a": "note : this"}', 1)],
)
def test_what_an_answer_quotes_does_not_slow_a_large_file(text, keys):
    assert _json._keys_at_most(text.encode()) == keys


def test_a_key_twice_in_a_large_file_is_refused_where_it_matters_and_numbers_stay_exact(tmp_path):
    rows = [
        {
            "promptIdx": 0,
            "testIdx": i,
            "provider": {"id": "p"},
            "vars": {"q": str(i)},
            "success": True,
            "score": 0.1,
            "filler": 'x": ' * 9000,
        }
        for i in range(40)
    ]
    text = json.dumps({"results": {"version": 3, "results": rows}})
    assert len(text) > _json._LARGE
    file = tmp_path / "results.json"
    file.write_text(text, "utf-8")
    assert read_campaign(file).codes.size == 40
    assert _json.load(file.read_bytes())["results"]["results"][0]["score"] == Decimal("0.1")
    file.write_text(text.replace('"success": true', '"success": true, "success": false', 1), "utf-8")
    assert isinstance(_json.load(file.read_bytes())["results"]["results"][0]["success"], Twice)
    with pytest.raises(InputError, match="key 'success' twice"):
        read_campaign(file)
