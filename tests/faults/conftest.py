"""Real runs that are killed, or find no room. ``make test-faults`` runs this folder; the default tests leave it out."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalkit.records import bundled
from evalkit.report import FILES, KINDS, LOCK, verify

SIDES = ("OLDRUN", "NEWRUN")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """These files are collected only where the folder is named."""
    return None if any("faults" in Path(str(argument).split("::")[0]).parts for argument in config.args) else True


class Place:
    """Inputs whose every name says OLDRUN or NEWRUN, a whole run of each, and folders of their own for what runs leave elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root, self.out, self.log, self.mark = root, root / "out", root / "log", uuid.uuid4().hex
        self.elsewhere = [root / name for name in ("home", "tmp", "runtime", "cwd", "inputs")]
        home, tmp, runtime, self.cwd, inputs = self.elsewhere
        for folder in self.elsewhere:
            folder.mkdir()
        theirs = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GITHUB_STEP_SUMMARY")
        self.env = {name: value for name, value in os.environ.items() if name not in theirs}
        self.env |= {"HOME": str(home), "TMPDIR": str(tmp), "XDG_RUNTIME_DIR": str(runtime), "EVALKIT_FAULTS": self.mark}
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        self.inputs: dict[tuple[str, str], Path] = {}
        for side in SIDES:
            campaign, tallies = inputs / f"{side}.csv", inputs / f"{side}-tallies.csv"
            rows = bundled("fixtures/claude_merge.csv").read_text().replace("MERGE,i6,1,fail\n", "")  # so that rerun.csv has a row
            campaign.write_text(re.sub(r"^(?=[CMB][A-Z]+,)", side, rows, flags=re.MULTILINE))
            rows = bundled("fixtures/traffic_mix.csv").read_text()
            tallies.write_text(re.sub(r"^(?=[bc])", side, rows, flags=re.MULTILINE))
            self.inputs["release", side], self.inputs["mix", side] = campaign, tallies
        self.runs: dict[str, Path] = {}  # an old run of each kind
        self.seconds: dict[str, float] = {}
        self.writing: dict[str, float] = {}  # seconds from the first file of a run to the last
        for kind in KINDS:
            for side in reversed(SIDES):  # the second start is a warm one
                began = time.monotonic()
                self.runs[kind] = root / f"{kind} {side}"
                assert self.start(kind, side, self.runs[kind]).wait(120) == 0, self.log.read_text()
                self.seconds[kind] = time.monotonic() - began
            assert self.state(self.runs[kind]) == "old"
            first, last = (changed(self.runs[kind] / name) for name in ("report.ipynb", "decision.json"))
            self.writing[kind] = (last - first) / 1e9
        self.before = self.listing()

    def words(self, kind: str, side: str, out: Path, given: Path | None = None) -> list[str]:
        path = given or self.inputs[kind, side]
        more = ["incumbent", f"{side}BASELINE"] if kind == "release" else ["baseline", f"{side}baseline", "-p", "candidate", f"{side}candidate"]
        parameters = ["-p", "campaign" if kind == "release" else "tallies", str(path), "-p", *more]
        return [sys.executable, "-m", "evalkit", "report", kind, *parameters, "-o", str(out)]

    def start(self, kind: str, side: str, out: Path, given: Path | None = None, log: Path | None = None) -> subprocess.Popen[bytes]:
        """A run as a process group of its own."""
        return self.popen(self.words(kind, side, out, given), log)

    def popen(self, words: list[str], log: Path | None = None) -> subprocess.Popen[bytes]:
        with (log or self.log).open("wb") as told:
            return subprocess.Popen(
                words, cwd=self.cwd, env=self.env, stdout=told, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_hears_interrupts
            )

    def put(self, kind: str | None) -> None:
        """The folder as an old run left it, or without a run: then what a killed one left stays."""
        if kind:
            shutil.rmtree(self.out, ignore_errors=True)
            shutil.copytree(self.runs[kind], self.out)
        for name in () if kind else FILES:
            (self.out / name).unlink(missing_ok=True)

    def state(self, out: Path) -> str:
        """Whose run is whole; nothing may be of two runs, not even without a decision."""
        there = [name for name in FILES if (out / name).exists()]
        texts = [(out / name).read_text() for name in there]
        sides = [{side for side in SIDES if side in text} for text in texts]
        assert all(len(found) == 1 for found in sides), dict(zip(there, sides, strict=True))
        assert len(set.union(set(), *sides)) <= 1, dict(zip(there, sides, strict=True))
        if "decision.json" not in there:
            return "none"
        assert len(there) == (6 if json.loads(texts[-1])["kind"] == "release" else 5)
        assert {path.name for path in out.iterdir()} == {*there, LOCK}
        assert verify(out) == []
        return "old" if sides[0] == {SIDES[0]} else "new"

    def refused(self, log: Path | None = None) -> str:
        """What the run said: one refusal, and no traceback, unless a kernel without room for its own folders said so."""
        told = (log or self.log).read_text()
        assert "Traceback" not in told or ("[Errno 28]" in told and "Kernel died" in told)
        assert told.count("refused: ") == 1, told
        return told

    def listing(self) -> list[tuple[Path, bytes]]:
        """What lies outside the output folder, the inputs among it."""
        return sorted((path, path.read_bytes() if path.is_file() else b"") for folder in self.elsewhere for path in folder.rglob("*"))

    def processes(self, what: str = "") -> list[int]:
        """The processes of this place's runs, wherever they are adopted."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (path / "environ").read_bytes() and what.encode() in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
            except OSError:  # it ended meanwhile
                pass
        return found

    def alone(self) -> float:
        """The seconds until the last process of a run has gone."""
        began = time.monotonic()
        until(lambda: not self.processes(), 20)
        return time.monotonic() - began


def _hears_interrupts() -> None:
    """A shell's background job ignores them, and what it starts inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def changed(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0


def until(true: Callable[[], object], seconds: float = 60, pause: float = 0.0002) -> None:
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(pause)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc, in which to find what a killed run left")
    return Place(tmp_path_factory.mktemp("faults"))


@pytest.fixture(autouse=True)
def _leaves_nothing_elsewhere(place: Place) -> Iterator[None]:
    yield
    place.alone()
    assert place.listing() == place.before
    shutil.rmtree(place.out, ignore_errors=True)


@pytest.fixture(scope="session")
def ledger() -> Iterator[dict[str, Counter[str]]]:
    """How many runs of each sort left what, printed at the end."""
    found: dict[str, Counter[str]] = {}
    yield found
    print(file=sys.__stdout__)
    for sort, counts in found.items():
        print(f"{sort:40} {'; '.join(f'{n} {state}' for state, n in sorted(counts.items()))}", file=sys.__stdout__)
