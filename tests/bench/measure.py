"""Time contenders in turn, hold their numbers to each other, and say how far a goal is met."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

OURS = "evalkit"
ROOT = Path(__file__).resolve().parents[2]
Answer = Mapping[str, Any]
Alike = Callable[[Answer, Answer], bool]


@dataclass(frozen=True)
class Sample:
    """One run: seconds, what came out, and, of a process of its own, its peak memory and that of its imports, in MB."""

    seconds: float
    answer: Answer
    peak: float = 0
    imports: float = 0


@dataclass(frozen=True)
class Goal:
    """Ours is to take at most ``factor`` times what the reference takes, plus ``slack``."""

    words: str
    factor: float = 0
    slack: float = 0


@dataclass(frozen=True)
class Line:
    """One line of the result: a contender's median, and where a goal names it, the share of what it allows that ours takes."""

    row: int
    work: str
    contender: str
    value: float
    unit: str = "s"
    ratio: float | None = None  # ours to this contender's
    goal: str = ""
    share: float | None = None

    @property
    def met(self) -> str:
        if self.share is None:
            return ""
        return f"yes, {shown(self.share)} of what it allows" if self.share <= 1 else f"**no**, {shown(self.share)} times what it allows"


def shown(number: float, unit: str = "") -> str:
    """Three digits, small seconds as milliseconds or microseconds.

    >>> shown(0.01234, "s"), shown(1234.5, "MB"), shown(0.25)
    ('12.3 ms', '1,234 MB', '0.25')
    """
    for much, less in (("s", "ms"), ("ms", "us")):
        if unit == much and number < 1:
            number, unit = number * 1000, less
    return (f"{number:,.0f}" if number >= 100 else f"{number:.3g}") + f" {unit}".rstrip()


def same(first: Answer, other: Answer) -> bool:
    """Equal in every number that both give, and there is at least one."""
    both = first.keys() & other.keys()
    return bool(both) and all(first[key] == other[key] for key in both)


def timed(run: Callable[[], Answer]) -> Callable[[], Sample]:
    """A run in this process."""

    def sample() -> Sample:
        gc.collect()
        start = time.perf_counter()
        answer = run()
        return Sample(time.perf_counter() - start, answer)

    return sample


def child(name: str, *arguments: object) -> Callable[[], Sample]:
    """A run in a fresh process, its imports apart."""
    command = [sys.executable, "-m", "tests.bench.child", name, *map(str, arguments)]

    def sample() -> Sample:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return Sample(**json.loads(done.stdout.splitlines()[-1]))

    return sample


def in_turn(contenders: Mapping[str, Callable[[], Sample]], rounds: int, alike: Alike = same) -> dict[str, Sample]:
    """The medians of several rounds, every contender once a round in the same order; unequal numbers end the benchmark."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            sample = run()
            first = next(iter(samples.values()), None) or [sample]
            if not alike(first[0].answer, sample.answer):
                raise SystemExit(f"{name} found {dict(sample.answer)}, but {next(iter(samples))} found {dict(first[0].answer)}")
            samples[name].append(sample)
    return {
        name: Sample(median(s.seconds for s in runs), runs[0].answer, median(s.peak for s in runs), median(s.imports for s in runs))
        for name, runs in samples.items()
    }


def lines(row: int, work: str, values: Mapping[str, float], goals: Mapping[str, Goal], unit: str = "s") -> list[Line]:
    """The lines of one table: ours first, then the others, with the goals that name them (or ourselves)."""
    ours = values[OURS]
    out = []
    for name, value in values.items():
        goal = goals.get(name)
        share = ours / (goal.factor * value + goal.slack) if goal else None
        out.append(Line(row, work, name, value, unit, None if name == OURS else ours / value, goal.words if goal else "", share))
    return out


def seconds(row: int, work: str, found: Mapping[str, Sample], goals: Mapping[str, Goal]) -> list[Line]:
    """The lines of the times."""
    return lines(row, work, {name: sample.seconds for name, sample in found.items()}, goals)


def memory(row: int, work: str, found: Mapping[str, Sample], goals: Mapping[str, Goal]) -> list[Line]:
    """The lines of the peak memories, with what imports alone take."""
    out = lines(row, f"{work}, peak memory", {name: sample.peak for name, sample in found.items()}, goals, "MB")
    return out + [Line(row, f"{work}, memory after imports", name, s.imports, "MB") for name, s in found.items() if s.imports]
