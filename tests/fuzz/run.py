"""Coverage-guided fuzzing of every reader, record and parameter: ``make fuzz``, or ``python tests/fuzz/run.py [--runs N] [TARGET ...]``.

Whatever goes in, a named refusal comes out, or a result that holds: what was read is written and read again, the fast reader says
what the strict one says, a rule that was read decides. Anything else is a finding, and so is an input that takes seconds or
gigabytes; each place in the code is reported once, and the run goes on. Findings, and the inputs that reach new code, are kept in
``.venv/fuzz``; the seeds are the fixtures. Without ``--runs`` each target takes as many inputs as ``targets.py`` says.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from pathlib import Path

import atheris
import mutate
from targets import FIXTURES, TARGETS

KEPT = FIXTURES.parent / ".venv" / "fuzz"
LONGEST = 8192  # bytes of an input
SLOWEST = 3.0  # seconds of an input, of this process's own time
LARGEST = 3000  # megabytes of the process


def fuzz(name: str, runs: int) -> None:
    """One target in this process, which ends here."""
    target, kept = TARGETS[name], KEPT / name
    with atheris.instrument_imports(include=["evalkit"]):
        read = target.make()
    from evalkit.errors import EvalkitError

    seeds = [seed for glob in target.seeds for seed in ([glob] if isinstance(glob, bytes) else _contents(glob))]
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-seeds-"))
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    (kept / "corpus").mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    slowest, started = 0.0, time.monotonic()

    def one(data: bytes) -> None:
        nonlocal slowest
        before = time.process_time()
        try:
            counts["unread" if read(data, zlib.crc32(data)) is None else "read"] += 1
        except EvalkitError as error:
            counts["refused"] += 1
            str(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            _keep(kept, _place(error), data, "".join(traceback.format_exception(error)))
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust
                raise
            _keep(kept, _place(error), data, "".join(traceback.format_exception(error)))
        slowest = max(slowest, took := time.process_time() - before)
        if took > SLOWEST:
            _keep(kept, "slow", data, f"{took:.1f} seconds")
        counts["inputs"] += 1
        if counts["inputs"] == runs:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            told = {**counts, "seconds": round(time.monotonic() - started), "slowest": round(slowest, 2), "megabytes": most}
            (kept / "told.json").write_text(json.dumps(told))
            os._exit(0)

    options = [f"-max_len={LONGEST}", "-timeout=60", f"-rss_limit_mb={LARGEST}", f"-artifact_prefix={kept}/", "-mutate_depth=1"]
    atheris.Setup(
        [sys.argv[0], str(kept / "corpus"), str(corpus), *options], one, custom_mutator=mutate.by(getattr(mutate, target.change), seeds)
    )
    atheris.Fuzz()


def _contents(glob: str) -> list[bytes]:
    files = [path for path in sorted(FIXTURES.glob(glob)) if path.is_file()]
    if not files:
        raise SystemExit(f"no seed in fixtures/{glob}")
    return [data for path in files if len(data := path.read_bytes()) <= LONGEST]


def _place(error: BaseException) -> str:
    """The kind of an error and the line of the kit from which it came: one finding each."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "evalkit" in frame.filename or "fuzz" in frame.filename]
    return f"{type(error).__name__}-{Path(frames[-1].filename).stem}-{frames[-1].lineno}"


def _keep(kept: Path, place: str, data: bytes, told: str) -> None:
    """The shortest input of each finding."""
    path = kept / f"found-{place}"
    if not path.exists() or len(data) < path.stat().st_size:
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(told, "utf-8", "backslashreplace")


def main() -> int:
    """Each target in a process of its own, one after the other; the status says whether anything was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--runs", type=int, default=0, help="inputs for each target")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    status = 0
    for name in options.targets or TARGETS:
        runs, kept = options.runs or TARGETS[name].runs, KEPT / name
        if options.here:
            fuzz(name, runs)
        kept.mkdir(parents=True, exist_ok=True)
        for old in [path for path in kept.iterdir() if path.is_file()]:
            old.unlink()
        with (kept / "log.txt").open("w") as log:
            done = subprocess.run([sys.executable, __file__, name, "--here", "--runs", str(runs)], stdout=log, stderr=log, check=False)
        found = sorted(
            path.name for path in kept.iterdir() if path.name.startswith(("found-", "crash-", "timeout-", "oom-")) and path.suffix != ".txt"
        )
        told = (kept / "told.json").read_text() if (kept / "told.json").exists() else f"broke off; see {kept / 'log.txt'}"
        print(f"{name}: {told} {'found ' + ', '.join(found) if found else 'nothing found'}", flush=True)
        status |= bool(found or done.returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
