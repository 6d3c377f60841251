"""Runs of the command line, ended by force or short of room: the old run whole, no decision, or the new run whole; and nothing elsewhere."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.report import FILES, KINDS, LOCK, REFUSED

from .conftest import Place, changed, until

KILLS = int(os.environ.get("EVALKIT_KILLS", "200"))
MOMENTS = ("any", "any", "writing", "clearing")


def wait_for(place: Place, moment: str, kind: str, run: subprocess.Popen[bytes], began: int, share: float) -> None:
    """The moment of the kill: somewhere in the run, or in the milliseconds in which files go or come."""

    def cleared() -> bool:
        return not (place.out / "decision.json").exists()

    def writing() -> bool:
        return changed(place.out / "report.ipynb") > began or any(name.startswith(".report.ipynb.") for name in os.listdir(place.out))  # noqa: PTH208 (often)

    if moment == "any":
        time.sleep(share * place.seconds[kind])
    elif moment == "clearing":
        until(lambda: cleared() or run.poll() is not None)
        time.sleep(share * 0.003)
    else:
        until(lambda: (place.out.exists() and writing()) or run.poll() is not None)
        time.sleep(share * 1.5 * place.writing[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("how", "times"), [(signal.SIGKILL, KILLS // 2), (signal.SIGTERM, KILLS // 20), (signal.SIGINT, KILLS // 20)])
def test_a_run_that_is_killed_leaves_the_old_run_none_or_the_new(place: Place, ledger: dict[str, Counter[str]], kind, how, times) -> None:
    rng = random.Random(f"{kind} {how.name}")
    for n in range(times):
        moment, old = MOMENTS[n % len(MOMENTS)], rng.choice([*KINDS, None])
        old = (old or kind) if moment == "clearing" else old
        place.put(old)
        began = time.time_ns()
        run = place.start(kind, "NEWRUN", place.out)
        wait_for(place, moment, kind, run, began, rng.random())
        if run.poll() is None:
            os.killpg(run.pid, how)
        run.wait(30)
        found = place.state(place.out)
        assert found in ("none", "new", "old" if old else "none")
        ledger.setdefault(f"{kind} {how.name}, moment {moment}", Counter())[found] += 1
        if n % 10 == 9:  # at once, over the remains
            assert place.start(kind, "OLDRUN", place.out).wait(60) == 0, place.log.read_text()
            assert place.state(place.out) == "old"
            ledger.setdefault("the next run over the remains", Counter())["whole"] += 1
        assert place.alone() < 5
        assert place.listing() == place.before


REAPER = """
import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
subprocess.call(sys.argv[1:])
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("seconds", [0, 0.2, 0.5, 1])
def test_the_kernel_of_a_killed_run_ends_even_where_another_than_process_1_adopts_it(place: Place, seconds: float) -> None:
    reaper = place.popen([sys.executable, "-c", REAPER, *place.words("release", "NEWRUN", place.out)])
    try:
        until(lambda: place.processes("ipykernel_launcher"))
        time.sleep(seconds)
        (runner,) = set(place.processes("evalkit\0report")) - {reaper.pid}
        os.kill(runner, signal.SIGKILL)
        until(lambda: place.processes() == [reaper.pid], 10)
    finally:
        for process in place.processes():
            os.kill(process, signal.SIGKILL)
        reaper.wait(10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0, 0.3, 0.6, 0.9, 1.2, 1.5])
def test_a_kernel_that_dies_is_a_refusal_by_name(place: Place, ledger: dict[str, Counter[str]], kind: str, seconds: float) -> None:
    place.put(kind)
    run = place.start(kind, "NEWRUN", place.out)
    until(lambda: place.processes("ipykernel_launcher"))
    time.sleep(seconds)
    for kernel in place.processes("ipykernel_launcher"):
        os.kill(kernel, signal.SIGKILL)
    status, found = run.wait(60), place.state(place.out)
    if found == "none":  # else the kernel had done its work
        assert status == REFUSED
        assert "a run that broke off (Kernel died" in place.refused()
        assert [path.name for path in place.out.iterdir()] == [LOCK]
    assert found != "old"
    ledger.setdefault(f"{kind}, the kernel killed", Counter())[found] += 1


# A disk without room, and one that is not to be written: a file system of its own, in a mount namespace of its own

APART = ["unshare", "-m" if getattr(os, "geteuid", int)() == 0 else "-rm", "sh", "-ec"]
SCRIPT = """
mount -t tmpfs -o "$1" none "$2"
[ -z "$3" ] || cp -a "$3/." "$2"
[ -z "$4" ] || mount -o "remount,$4" none "$2"
kept=$5 mounted=$2; shift 5
"$@" && status=0 || status=$?
cp -a "$mounted/." "$kept"
exit $status
"""


@pytest.fixture
def apart(place: Place, tmp_path: Path) -> Callable[..., tuple[int, Path]]:
    """``apart(kind, options, old, remount)``: the status of a run into such a file system, and a copy of what it left."""
    try:
        done = subprocess.run([*APART, 'mount -t tmpfs none "$1"', "sh", str(tmp_path)], capture_output=True, check=False)
    except OSError:
        pytest.skip("no unshare here")
    if done.returncode:
        pytest.skip("no right to mount here, not even in a namespace")

    def run(kind: str, options: str, old: str | None = None, remount: str = "") -> tuple[int, Path]:
        place.out.mkdir(exist_ok=True)
        (kept := tmp_path / f"kept {len(list(tmp_path.iterdir()))}").mkdir()
        before = str(place.runs[old]) if old else ""
        words = [*APART, SCRIPT, "sh", options, str(place.out), before, remount, str(kept), *place.words(kind, "NEWRUN", place.out)]
        return place.popen(words).wait(120), kept

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_without_room_is_a_refusal_and_no_decision(place: Place, apart, ledger: dict[str, Counter[str]], kind: str) -> None:
    total = sum(path.stat().st_size for path in place.runs[kind].iterdir()) // 1024
    pages = (*(f"size={k}k" for k in (8, 12, 16, 32, 64, total // 2, total - 160, total - 40, total - 8, total, total + 32, 2 * total)),)
    nodes = (*(f"nr_inodes={n}" for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14)), "nr_inodes=100")
    for options in (*pages, *nodes):
        status, kept = apart(kind, options)
        found = place.state(kept)
        ledger.setdefault(f"{kind} into {options.split('=')[0]}", Counter())[found] += 1
        if found == "none":
            assert status == REFUSED, (options, place.log.read_text())
            place.refused()
        else:
            assert (status, found) == (0, "new")
    for old in KINDS:
        for k in range(0, 64, 16):  # the old run and nothing more, or little more
            there = sum(-(-path.stat().st_size // 4096) * 4 for path in place.runs[old].iterdir())
            status, kept = apart(kind, f"size={there + k}k", old)
            found = place.state(kept)
            assert (found in ("old", "none")) == (status == REFUSED), place.log.read_text()
            ledger.setdefault(f"{kind} where an old run fills the disk", Counter())[found] += 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("old", [*KINDS, None])
def test_a_folder_that_is_not_to_be_written_keeps_its_old_run(place: Place, apart, kind: str, old: str | None) -> None:
    status, kept = apart(kind, "size=4m", old, "ro")
    assert status == REFUSED
    assert "no way to write into" in place.refused()
    assert place.state(kept) == ("old" if old else "none")
    assert len(list(kept.iterdir())) == (len(list(place.runs[old].iterdir())) if old else 0)


# Inputs that move, and two runs


def appended(path: Path) -> None:
    with path.open("a") as stream:
        stream.write("x,")


def and_back(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[:100])
    path.write_text(text)


def replaced(path: Path) -> None:
    (path.parent.parent / "next.csv").write_text(path.read_text())
    (path.parent.parent / "next.csv").replace(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0, 0.7])
@pytest.mark.parametrize("change", [appended, and_back, replaced, lambda path: os.truncate(path, 50), Path.unlink])
def test_an_input_that_changes_while_it_is_read_ends_in_no_decision(place: Place, tmp_path: Path, kind, seconds, change) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "input.csv"
    path.write_bytes(place.inputs[kind, "NEWRUN"].read_bytes())
    place.put(kind)
    run = place.start(kind, "NEWRUN", place.out, path)
    until(lambda: any(place.out.glob(".run-*")))
    time.sleep(seconds)
    change(path)
    assert run.wait(60) == REFUSED
    place.refused()
    assert [path.name for path in place.out.iterdir()] == [LOCK]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lead", [0, 0.05, 0.5])
def test_of_two_runs_into_one_folder_one_is_whole_and_the_other_says_so(place: Place, kind: str, lead: float) -> None:
    logs = [place.root / "log of the old", place.root / "log of the new"]
    one = place.start(kind, "OLDRUN", place.out, log=logs[0])
    time.sleep(lead)
    two = place.start(KINDS[0], "NEWRUN", place.out, log=logs[1])
    status = [one.wait(60), two.wait(60)]
    assert status.count(REFUSED) == 1
    assert "found another run in" in place.refused(logs[status.index(REFUSED)])
    assert place.state(place.out) == ("new" if status[0] == REFUSED else "old")


def test_two_runs_into_two_folders_do_not_know_of_each_other(place: Place, tmp_path: Path) -> None:
    runs = [
        place.start(kind, side, tmp_path / f"{kind} {side}", log=tmp_path / f"{kind} {side}.log")
        for kind, side in zip(KINDS, ("OLDRUN", "NEWRUN"), strict=True)
    ]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert [place.state(tmp_path / name) for name in ("release OLDRUN", "mix NEWRUN")] == ["old", "new"]


def test_what_a_killed_run_leaves_is_in_its_folder_alone_and_the_next_clears_it(place: Place) -> None:
    run = place.start("release", "NEWRUN", place.out)
    until(lambda: place.processes("ipykernel_launcher"))
    time.sleep(0.5)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert {path.name[:5] for path in place.out.iterdir()} == {LOCK[:5], ".run-"}
    assert place.start("release", "NEWRUN", place.out).wait(60) == 0
    assert {path.name for path in place.out.iterdir()} == {*FILES, LOCK}
