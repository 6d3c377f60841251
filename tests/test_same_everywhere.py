"""The records that the fixtures give are the bytes kept in ``tests/matrix/records.json``, whatever the process around them is.

``make matrix`` asks the same of every supported Python and of the oldest and the newest packages.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BARE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # ASCII only
AROUND = {
    "hash seed 0": ({"PYTHONHASHSEED": "0"}, []),
    "hash seed 4294967295": ({"PYTHONHASHSEED": "4294967295"}, []),
    "python -O": ({}, ["-O"]),
    "python -OO, a day ahead": ({"TZ": "Pacific/Kiritimati"}, ["-OO"]),
    "no locale, a day behind": ({"TZ": "Etc/GMT+12", **BARE}, []),
    "development mode": ({"PYTHONDEVMODE": "1"}, ["-W", "error"]),
}


def found(environment: dict[str, str], options: list[str], *arguments: str) -> str:
    """What the comparison with the records that are kept says."""
    command = [sys.executable, *options, "tests/matrix/records.py", "--check", *arguments]
    given = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))} | environment
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0 other than those kept\n"
    return done.stderr


@pytest.mark.parametrize("around", AROUND)
def test_records_do_not_depend_on(around: str) -> None:
    assert "172 records, decimal point ." in found(*AROUND[around])


def test_records_do_not_depend_on_the_engine_or_the_order_of_its_rows() -> None:
    found({"PYTHONHASHSEED": "11"}, [], "--engines")


def test_records_do_not_depend_on_a_locale_that_writes_a_comma(tmp_path: Path) -> None:
    define = shutil.which("localedef")
    if not define or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("localedef or the sources of de_DE are not installed (Debian: locales)")
    subprocess.run([define, "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], check=True)
    assert "decimal point ," in found({"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}, [])
