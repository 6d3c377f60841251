"""The kit under every supported Python with its oldest and its newest packages: ``make matrix``, or one session with ``nox -s``."""

from __future__ import annotations

import nox

PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # those that are not installed are skipped by name
CORE = (
    "campaign", "decide", "bounds", "reductions", "reweighting", "exact", "records", "table", "frames", "sources", "uncertainty",
    "counterexample", "broken", "hostile", "adversary", "report",
)  # fmt: skip
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True


def witness(session: nox.Session) -> None:
    """The same records as those kept, the core tests, and every word that a notebook says; pictures are compared under the pins only."""
    session.install("--no-deps", "--editable", ".")
    session.run("python", "tests/matrix/records.py", "--check", "--engines")
    plain = ("python", "-m", "pytest", "-q", "-o", "addopts=", "-o", "filterwarnings=default", "-p", "no:cacheprovider")
    session.run(*plain, *(f"tests/test_{name}.py" for name in CORE))
    nbval = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "--nbval-sanitize-with=tests/matrix/nbval_sanitize.cfg")
    session.run(*plain, *nbval, "notebooks")


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """The lower bounds of pyproject.toml."""
    session.install("--requirement", "tests/matrix/oldest.txt")
    witness(session)


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """The pins that make, CI and Binder install."""
    session.install("--requirement", "binder/requirements.txt")
    witness(session)


@nox.session(python=PYTHONS)
def unpinned(session: nox.Session) -> None:
    """Whatever an installation finds today: it sees a release that breaks us before the pins move."""
    session.install("--upgrade", ".[lab,test]")
    witness(session)
