"""The package, the README and the files around the code: what they promise is there."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalkit.sources import read_campaign

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8") if (ROOT / "README.md").exists() else ""


def blocks() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_wheel_carries_the_report_notebooks_and_the_fixtures_and_decides_alone(tmp_path: Path) -> None:
    build = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1]))"
    name = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[-1]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(tmp_path / "installed")
    assert {"evalkit/_data/notebooks/report_release.ipynb", "evalkit/_data/notebooks/report_mix.ipynb", "evalkit/py.typed"} <= names
    assert not [name for name in names if "tests/" in name or "broken" in name]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from evalkit import report; r = report.release(); "
        "assert sys.argv[1] in report.__file__; print(r.decision.verdict, report.bundled('notebooks/report_mix.ipynb').exists())"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "installed")], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "promote True\n"


def test_the_table_in_the_readme_is_read_as_a_campaign(tmp_path: Path) -> None:
    table = next(block for block in blocks() if block.startswith("candidate,instance,repetition,outcome"))
    (tmp_path / "results.csv").write_text(table)
    assert read_campaign(tmp_path / "results.csv").candidates == ("current", "new")


def test_every_make_target_in_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"report", "test", "lab"} <= named <= targets


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("fixtures/*.md")]))
def test_every_link_inside_the_repository_resolves(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text("utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert ((ROOT / page).parent / target).exists(), target


def test_no_address_of_a_registry_and_no_path_of_a_machine_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(?<![A-Za-z0-9_.])/(?:tmp|work|root|home|Users)/[A-Za-z0-9.]|https?://[^\s)\"']*(?:pypi|npmjs|debian)\b")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".ipynb", ".cfg", ".json", ".csv", ".cff", ""} and path.is_file() and path != Path(__file__):
            found = pattern.search(path.read_text("utf-8", errors="replace"))
            assert not found, (name, found[0] if found else "")
