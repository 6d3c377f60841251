"""Four times the results take four times the work: calls, comparisons of names and bytes are counted, no clock is read."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evalkit import (
    Campaign,
    Reference,
    Tally,
    cell_mean,
    compare,
    draw,
    evidence,
    fail_closed,
    read_campaign,
    read_rule,
    show,
)
from evalkit.bounds import decide_by_bounds
from evalkit.campaign import CODE, FAIL, PASS
from evalkit.records import decision_record, mix_record
from evalkit.tabulate import tabulate_tally

HERE = Path(__file__).parent
FEW, TIMES = 400, 4
MOST = 1.1 * TIMES  # a table that doubles takes a little more; a loop in a loop would take 16


def calls(work: Callable[[], object]) -> int:
    """Calls of Python and of C."""
    made = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return made


def peak(work: Callable[[], object]) -> int:
    """The most bytes of Python and numpy at one time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Name(str):
    """A name that counts how often it is compared: what a search in a list of names costs, which no call shows."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def table(folder: Path, n: int) -> Path:
    cells = [
        f"{who},task-{i},{r},{'pass' if (i * 7 + int(r)) % 3 else 'fail'},{'easy' if i % 2 else 'hard'}"
        for i in range(n)
        for r in "12"
        for who in "AB"
    ]
    (folder / "cells.csv").write_text("candidate,instance,repetition,outcome,group\n" + "\n".join(cells) + "\n")
    return folder / "cells.csv"


def log(folder: Path, n: int) -> Path:
    whole = json.loads((HERE.parent / "fixtures/sources/inspect/beta.json").read_text())
    ids = [f"task-{i}" for i in range(n)]
    whole["eval"]["dataset"] |= {"samples": n, "sample_ids": ids}
    whole["results"] |= {"total_samples": 2 * n, "completed_samples": 2 * n}
    whole["samples"] = [whole["samples"][0] | {"id": name, "epoch": epoch} for name in ids for epoch in (1, 2)]
    (folder / "log.json").write_text(json.dumps(whole))
    return folder / "log.json"


def packed(folder: Path, n: int) -> Path:
    whole = json.loads(log(folder, n).read_text())
    samples = whole.pop("samples")
    (folder / "log.json").unlink()
    with zipfile.ZipFile(folder / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(whole))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return folder / "log.eval"


def promptfoo(folder: Path, n: int) -> Path:
    whole = json.loads((HERE.parent / "fixtures/sources/promptfoo/results.json").read_text())
    row = next(row for row in whole["results"]["results"] if row["success"])
    made = [row | {"testIdx": i, "testCase": row["testCase"] | {"description": f"task {i}"}} for i in range(n)]
    whole["results"] |= {"results": made, "stats": {"successes": n, "failures": 0, "errors": 0}}
    (folder / "results.json").write_text(json.dumps(whole))
    return folder / "results.json"


def requests(folder: Path, n: int) -> Path:
    rows = [f"{period},r-{period}-{i},group {i % 7},{'pass' if i % 3 else 'fail'}" for i in range(n) for period in ("before", "after")]
    (folder / "requests.csv").write_text("period,request,group,outcome\n" + "\n".join(rows) + "\n")
    return folder / "requests.csv"


def named(n: int) -> Campaign:
    """Three candidates of n instances, one of them with gaps, under names that count."""
    rng = np.random.default_rng(n)
    codes = np.where(rng.random((2, 3, n)) < 0.7, PASS, FAIL).astype(np.uint8)
    codes[0, 2, :: n // 20] = CODE["timeout"]  # 20, since what they could change is searched, up to a limit
    names = tuple(Name(f"task-{i}") for i in range(n))
    groups = tuple(Name("easy" if i % 2 else "hard") for i in range(n))
    return Campaign(tuple(map(Name, ("A", "B", "C"))), names, (Name("1"), Name("2")), codes, groups)


def tallies(n: int) -> tuple[Tally, Tally, Reference]:
    names = [Name(f"group {i}") for i in range(n)]
    before, after = (Tally.of(period, dict.fromkeys(names, (1 + shift, 4))) for period, shift in (("before", 1), ("after", 0)))
    return before, after, Reference("r", "undeclared", {name: Fraction(1, n) for name in names}, "undeclared", "a test")


READ: dict[str, tuple[Callable[[Path, int], Path], Callable[[Path], object]]] = {
    "a table": (table, read_campaign),
    "a log": (log, lambda path: read_campaign(path, scorer="match")),
    "a packed log": (packed, lambda path: read_campaign(path, scorer="match")),
    "promptfoo": (promptfoo, read_campaign),
    "requests": (requests, lambda path: tabulate_tally(str(path), str(path.with_name("tallies.csv")))),
}


@pytest.mark.parametrize("what", READ)
def test_reading_grows_with_the_file(what: str, tmp_path: Path) -> None:
    make, read = READ[what]
    few, many = tmp_path / "few", tmp_path / "many"
    for folder in (few, many):
        folder.mkdir()
    small, large = make(few, FEW), make(many, FEW * TIMES)
    read(small)  # imports, and tables that are filled once
    assert calls(lambda: read(large)) < MOST * calls(lambda: read(small))
    assert peak(lambda: read(large)) < MOST * peak(lambda: read(small))


RULE = read_rule()


def report(campaign: Campaign) -> None:
    """Everything on the page of a release but its pictures."""
    decision = decide_by_bounds(campaign, RULE, incumbent="A")
    decision_record(campaign, RULE, decision)
    show.standings(RULE, decision)
    for told in (show.group_counts(campaign, RULE, decision, None), show.pass_hat_table(campaign, RULE, decision), show.read(campaign)):
        assert told
    for said in ("compared", "could_change", "rerun", "intervals", "stability", "chance"):
        assert getattr(evidence, said)(campaign, RULE, decision)


def pictures(campaign: Campaign) -> None:
    """Its pictures."""
    draw.inversion(campaign, fail_closed, cell_mean)
    draw.dial(campaign)


def mix(n: int) -> None:
    """A comparison of two periods of n groups, and its record."""
    before, after, reference = tallies(n)
    mix_record({"before": before, "after": after}, reference, compare(before, after, reference))


@pytest.mark.parametrize("work", [report, pictures])
def test_a_report_grows_with_the_instances(work: Callable[[Campaign], None]) -> None:
    work(named(FEW))
    found = []
    for n in (FEW, FEW * TIMES):
        campaign, again = named(n), named(n)
        Name.compared = 0
        found.append((calls(lambda at=campaign: work(at)), Name.compared, peak(lambda at=again: work(at))))  # type: ignore[misc]
    assert all(large < MOST * small for small, large in zip(*found, strict=True)), found


def test_a_comparison_of_mixes_grows_with_the_groups() -> None:
    mix(FEW)
    found = []
    for n in (FEW, FEW * TIMES):
        Name.compared = 0
        found.append((calls(lambda n=n: mix(n)), Name.compared, peak(lambda n=n: mix(n))))  # type: ignore[misc]
    assert all(large < MOST * small for small, large in zip(*found, strict=True)), found


def test_what_grows_faster_is_seen() -> None:
    names = [Name(f"task-{i}") for i in range(FEW)]
    copies = [Name(str(name)) for name in names]
    Name.compared = 0
    assert all(name in names for name in copies)
    assert Name.compared > FEW**2 / 3
    assert calls(lambda: [len(name) for name in names for _ in names]) > FEW**2
    assert peak(lambda: np.ones((FEW, FEW))) > 8 * FEW**2
