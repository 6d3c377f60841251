"""Every malformed input of fixtures/broken is refused in the one sentence that the index promises."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit import errors, read_campaign, read_reference, read_rule, read_tallies
from evalkit.sources import read_inventory

BROKEN = Path(__file__).resolve().parent.parent / "fixtures" / "broken"
INDEX = json.loads((BROKEN / "sentences.json").read_text(encoding="utf-8"))
READERS = {"campaign": read_campaign, "inventory": read_inventory, "tallies": read_tallies, "rule": read_rule, "reference": read_reference}
# Faults of the whole file, or of a cell that has no row.
NO_ROW = {
    "utf16_bom.csv",
    "truncated.csv.gz",
    "empty.csv",
    "header_only.csv",
    "repetition_ids_unique.csv",
    "group_unknown_for_declared.csv",
}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_broken_file_is_refused_in_its_sentence(name, monkeypatch):
    monkeypatch.chdir(BROKEN)
    entry = INDEX[name]
    with pytest.raises(getattr(errors, entry["error"])) as refused:
        READERS[entry["reader"]](name, **entry.get("args", {}))
    assert str(refused.value) == entry["sentence"]
    assert type(refused.value).__name__ == entry["error"]


OPTIMISED = """
import json, sys
from fractions import Fraction
import numpy as np
from evalkit import *
from evalkit._exact import count, rational
from evalkit.sources import read_inventory
assert False, "python -O drops this line"
readers = dict(campaign=read_campaign, inventory=read_inventory, tallies=read_tallies, rule=read_rule, reference=read_reference)
said = {}
for name, entry in json.load(open("sentences.json", encoding="utf-8")).items():
    try:
        said[name] = repr(readers[entry["reader"]](name, **entry.get("args", {})))
    except EvalkitError as error:
        said[name] = str(error)
campaign, rule = read_campaign(), read_rule()
for number, ask in enumerate([
    lambda: rational(0.1), lambda: count(True), lambda: rank({"A": (float("nan"),)}), lambda: rank({"A": (1,), "B": (1, 2)}), lambda: Tally.of("p", {"x": (2, 1)}),
    lambda: standardise(Tally.of("p", {"x": (1, 2)}), {"x": Fraction(1, 2)}), lambda: decide(campaign, rule, incumbent=""), lambda: decide(campaign, rule, incumbent="none"),
    lambda: at_least(3)(campaign.of("CLAUDE")), lambda: campaign.require(["0"]), lambda: ReleaseRule("r", "o", "p", fail_closed, floor=0), lambda: Limit("c", "median", Fraction(1)),
]):
    try:
        said[number] = repr(ask())
    except EvalkitError as error:
        said[number] = "refused"
print(json.dumps(said))
"""


def test_python_o_changes_no_refusal():
    """``assert`` vanishes under -O; a refusal does not."""
    done = subprocess.run([sys.executable, "-O", "-c", OPTIMISED], capture_output=True, text=True, cwd=BROKEN, timeout=60, check=True)
    said = json.loads(done.stdout)
    assert {name: said.pop(name) for name in INDEX} == {name: entry["sentence"] for name, entry in INDEX.items()}
    assert set(said.values()) == {"refused"}
    assert len(said) == 12


def test_there_are_at_least_45_of_them_and_each_file_is_in_the_index_or_used_by_one():
    assert len(INDEX) >= 45
    used = {value for entry in INDEX.values() for value in entry.get("args", {}).values()}
    assert {path.name for path in BROKEN.iterdir()} - used == {*INDEX, "sentences.json"}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_sentence_names_the_file_and_the_place_and_says_what_to_do(name):
    sentence = INDEX[name]["sentence"]
    assert sentence.startswith(name)
    assert sentence.count("; ") >= 2  # found; expected; what to do
    assert ": found " in sentence
    assert "; expected " in sentence
    assert "\n" not in sentence
    assert sentence.isprintable()
    assert len(sentence) < 1000
    if name.endswith((".csv", ".gz")) and name not in NO_ROW:
        assert sentence.startswith((f"{name}, row ", f"{name}, rows "))


def test_a_sentence_about_a_value_names_its_column():
    for name, entry in INDEX.items():
        if name.startswith(
            ("outcome_", "number_", "blank_candidate", "padded", "tally_arabic", "tally_decimal", "group_rel", "cluster_rel")
        ):
            assert ", column " in entry["sentence"].split(": found")[0], name


# Text that only looks broken

PLAIN = (BROKEN.parent / "claude_merge.csv").read_bytes()
ROWS = [line.split(b",") for line in PLAIN.splitlines()]
QUOTED = b"\n".join(b",".join(b'"' + field + b'"' for field in row) for row in ROWS)
BENIGN = {
    "mark at the start": b"\xef\xbb\xbf" + PLAIN,
    "windows line ends": PLAIN.replace(b"\n", b"\r\n"),
    "old mac line ends": PLAIN.replace(b"\n", b"\r"),
    "tabs": PLAIN.replace(b",", b"\t"),
    "all quoted": QUOTED,
    "all quoted after a mark": b"\xef\xbb\xbf" + QUOTED,
    "shuffled rows": b"\n".join([PLAIN.splitlines()[0], *sorted(PLAIN.splitlines()[1:], key=lambda line: line[::-1])]),
    "permuted columns": b"\n".join(b",".join(row[k] for k in (3, 1, 0, 2)) for row in ROWS),
    "no newline at the end": PLAIN.rstrip(),
    "blank lines at the end": PLAIN + b"\n\n",
    "1 and 0": PLAIN.replace(b"pass", b"1").replace(b"fail", b"0"),
    "TRUE and FALSE": PLAIN.replace(b"pass", b"TRUE").replace(b"fail", b"FALSE"),
    "a detail column": b"\n".join(
        line + (b",detail" if not n else b',"said ""no"", then\nstopped"') for n, line in enumerate(PLAIN.splitlines())
    ),
}


@pytest.mark.parametrize("name", BENIGN)
def test_a_benign_variant_reads_to_the_same_digest(name, tmp_path):
    path = tmp_path / "same.csv"
    path.write_bytes(BENIGN[name])
    assert read_campaign(path).digest == read_campaign().digest


def test_a_tally_in_another_order_and_coding_reads_to_the_same_tallies(tmp_path):
    path = tmp_path / "same.csv"
    lines = (BROKEN.parent / "traffic_mix.csv").read_text().splitlines()
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([lines[0], *reversed(lines[1:])]).encode())
    assert read_tallies(path) == read_tallies()
