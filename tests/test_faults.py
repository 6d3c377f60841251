"""A run that dies, or finds no room, at any one step on the disk: the old run whole, no decision, or the new run whole."""

from __future__ import annotations

import errno
import functools
import importlib.metadata
import io
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import papermill
import pytest

from evalkit import report
from evalkit.__main__ import main
from evalkit.evidence import RERUN_MIME
from evalkit.records import bundled
from evalkit.report import FILES, LOCK, verify
from evalkit.show import DECISION_MIME

SIDES = ("OLD", "NEW")


class Died(BaseException):
    """The process is gone: whatever it still tries does not reach the disk."""


class Disk:
    """Every call that changes the disk is a step; the step ``last`` fails as ``how`` says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps, self.last, self.how = 0, 0, "killed"
        for name in ("mkdir", "open", "fsync", "chmod", "replace", "unlink", "rmdir"):
            patch.setattr(os, name, self._as_step(name, getattr(os, name)))
        patch.setattr(os, "fdopen", lambda handle, mode: self._stream(handle, mode))

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.last or (self.steps > self.last > 0 and self.how in ("killed", "no room")):
            raise {
                "killed": Died(),
                "interrupted": KeyboardInterrupt(),
                "no room": OSError(errno.ENOSPC, "No space left on device"),
                "a fault": OSError(errno.EIO, "Input/output error"),
            }[self.how]

    def _as_step(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **options: Any) -> Any:
            if name != "open" or given[1] & os.O_CREAT:
                self.step()
            return None if name == "fsync" else call(*given, **options)

        return step

    def _stream(self, handle: int, mode: str) -> io.FileIO:
        disk = self

        class Stream(io.FileIO):
            def write(self, data: Any) -> int:
                half = super().write(data[: len(data) // 2])
                disk.step()
                return half + super().write(data[half:])

        return Stream(handle, mode)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, str]]:
    """The parameters of two release reports and of two mix reports, whose every name says OLD or NEW."""
    folder = tmp_path_factory.mktemp("inputs")
    found = {}
    for side in SIDES:
        campaign, tallies = folder / f"{side}.csv", folder / f"{side}-t.csv"
        campaign.write_text(re.sub(r"^(?=[CMB][A-Z]+,)", side, bundled("fixtures/claude_merge.csv").read_text(), flags=re.MULTILINE))
        tallies.write_text(re.sub(r"^(?=[bc])", side, bundled("fixtures/traffic_mix.csv").read_text(), flags=re.MULTILINE))
        found["release", side] = {"campaign": str(campaign), "incumbent": f"{side}BASELINE"}
        found["mix", side] = {"tallies": str(tallies), "baseline": f"{side}baseline", "candidate": f"{side}candidate"}
    return found


@pytest.fixture
def given(inputs: dict[tuple[str, str], dict[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    return dict(inputs)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, given: dict[tuple[str, str], dict[str, str]]) -> Callable[[str, str, Path], int]:
    """A report without a kernel and without its pictures: the record, in a notebook of one output cell."""
    records = {pair: getattr(report, pair[0])(**parameters).record for pair, parameters in given.items()}
    monkeypatch.setattr(papermill, "inspect_notebook", functools.cache(papermill.inspect_notebook))
    monkeypatch.setattr(importlib.metadata, "version", str)

    def execute(notebook: Path, target: Path, parameters: dict[str, str]) -> str:
        (target.parent / "ipython").mkdir()
        (target.parent / "ipython" / "history").touch()
        kind, side = next(pair for pair, found in given.items() if found == parameters)
        data = {"text/plain": f"{side} told", DECISION_MIME: records[kind, side], RERUN_MIME: {"header": ["detail"], "rows": [[side]]}}
        return json.dumps({"cells": [{"outputs": [{"data": data}]}]})

    monkeypatch.setattr(report, "_execute", execute)
    monkeypatch.setattr(report, "_page", lambda executed, title: f"<title>{title}</title>")

    def start(kind: str, side: str, output: Path) -> int:
        return main(["report", kind, *(word for pair in given[kind, side].items() for word in ("-p", *pair)), "-o", str(output)])

    return start


def state(output: Path) -> str:
    """Whose run is whole in the folder; nothing may be of two runs, not even without a decision."""
    there = [name for name in FILES if (output / name).exists()]
    texts = [(output / name).read_text() for name in there]
    (side,) = {side for side in SIDES for text in texts if side in text} or {""}
    assert all(side in text for text in texts)
    if "decision.json" not in there:
        return "none"
    assert len(there) == (6 if json.loads(texts[-1])["kind"] == "release" else 5)
    assert verify(output) == []
    return side


@pytest.mark.parametrize("how", ["killed", "interrupted", "no room", "a fault"])
@pytest.mark.parametrize(("before", "kind"), [("release", "release"), ("release", "mix"), ("mix", "release"), ("mix", "mix"), ("", "mix")])
def test_a_run_that_ends_at_any_step_leaves_the_old_run_none_or_the_new(tmp_path, monkeypatch, capsys, run, how, before, kind) -> None:
    old, out = tmp_path / "old", tmp_path / "out"
    if before:
        run(before, "OLD", old)
    else:
        old.mkdir()
    disk, states = Disk(monkeypatch), []
    for last in itertools.count(1):
        disk.last, disk.how = 0, how
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(old, out)
        disk.steps, disk.last = 0, last
        capsys.readouterr()
        status: int | None = None
        try:
            status = run(kind, "NEW", out)
        except (Died, KeyboardInterrupt):
            pass
        finally:
            reached, disk.last = disk.steps >= last, 0
        told = capsys.readouterr().err
        states.append(state(out))
        if status == report.REFUSED:
            assert (told.startswith("refused: found "), told.count("\n"), states[-1] == "NEW") == (True, 1, False)
        elif status is not None:
            assert states[-1] == "NEW"
        if not reached:
            break
        run(kind, "NEW", out)
        assert {path.name for path in out.iterdir()} == {*FILES, LOCK} - ({"rerun.csv"} if kind == "mix" else set())
    order = ["OLD", "none", "NEW"] if before else ["none", "NEW"]
    if how == "killed":
        assert [found for found, _ in itertools.groupby(states)] == order
    assert set(states) == set(order)
    assert len(states) > 25


def appended(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def and_back(path: Path) -> None:
    text = path.read_text()
    path.write_text("")
    path.write_text(text)


def renamed(path: Path) -> None:
    (path.parent / "other").write_text(path.read_text())
    (path.parent / "other").replace(path)


def came_and_went(path: Path, other: Path) -> None:
    other.write_text(path.read_text())
    other.unlink()


def linked(path: Path) -> None:
    path.rename(path.parent.parent / path.name)
    path.symlink_to(path.parent.parent / path.name)


CHANGES: dict[str, Callable[[Path], None]] = {
    "longer": appended, "truncated": lambda path: os.truncate(path, 10), "changed and changed back": and_back, "replaced": renamed,
    "gone": Path.unlink, "a link now": linked, "a folder now": lambda path: (path.unlink(), path.mkdir())[1],
}  # fmt: skip


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch, run: Callable[..., int]) -> Iterator[Callable[..., None]]:
    """``changing(change, path)``: the change is made while the notebook runs."""

    def install(change: Callable[[Path], None], path: Path) -> None:
        executed = report._execute
        monkeypatch.setattr(report, "_execute", lambda *given: (executed(*given), change(path))[0])

    return install


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", report.KINDS)
def test_an_input_that_changes_while_it_is_read_ends_in_no_decision(tmp_path, given, run, changing, capsys, kind, name) -> None:
    parameter = "campaign" if kind == "release" else "tallies"
    (tmp_path / "in").mkdir()
    path = Path(shutil.copy(given[kind, "NEW"][parameter], tmp_path / "in" / "input.csv"))
    given[kind, "NEW"] = {**given[kind, "NEW"], parameter: str(path)}
    assert run(kind, "NEW", tmp_path / "out") != report.REFUSED
    changing(CHANGES[name], path)
    assert run(kind, "NEW", tmp_path / "out") == report.REFUSED
    assert capsys.readouterr().err.startswith("refused: ")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [LOCK]


@pytest.mark.parametrize(("place", "status"), [("", report.REFUSED), ("deep", report.REFUSED), (".hidden", 0)])
def test_a_file_that_came_and_went_in_the_campaign_folder_was_perhaps_read(tmp_path, given, run, changing, place, status) -> None:
    folder = tmp_path / "in"
    (folder / place).mkdir(parents=True)
    path = Path(shutil.copy(given["release", "NEW"]["campaign"], folder))
    for name in (str(folder), f"{folder}/"):
        given["release", "NEW"] = {**given["release", "NEW"], "campaign": name}
        changing(lambda _: came_and_went(path, folder / place / "more.csv"), path)
        assert run("release", "NEW", tmp_path / "out") == status
        assert (tmp_path / "out" / "decision.json").exists() == (status == 0)


def test_a_folder_that_was_moved_away_and_made_anew_is_not_written_into(tmp_path, run, changing, capsys) -> None:
    """Two runs would hold two locks, and write into one place."""
    out = tmp_path / "out"

    def anew(_: Path) -> None:
        out.rename(tmp_path / "moved")
        out.mkdir()
        (out / LOCK).touch()

    changing(anew, out)
    assert run("mix", "NEW", out) == report.REFUSED
    assert "another folder" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == [LOCK]
