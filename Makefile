# Two commands: `make report` and `make test`. Both set up .venv from binder/requirements.txt, the pins that Binder and CI install too.

PYTHON ?= python3
VENV := .venv/bin/python
READY := .venv/.ready
OUT ?= report
CAMPAIGN ?=
INCUMBENT ?=
RULE ?=
ARGS ?=
RUNS ?=
KILLS ?= 200
TARGETS ?=
MODULES ?=
ROWS ?=
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
unexport JPY_SESSION_NAME
export IPYTHONDIR := $(CURDIR)/.venv/ipython

.PHONY: report mix test lab outputs class docs test-long test-second-look test-engines test-browser test-faults fuzz mutants matrix bench bench-long clean

report: $(READY)  ## the release report; CAMPAIGN=results.csv INCUMBENT=name ARGS="-p scorer match" for your own
	$(VENV) -m evalkit report release $(if $(CAMPAIGN),-p campaign '$(CAMPAIGN)') $(if $(INCUMBENT),-p incumbent '$(INCUMBENT)') $(if $(RULE),-p rule '$(RULE)') $(ARGS) -o '$(OUT)'

mix: $(READY)  ## the mix report on the bundled tallies
	$(VENV) -m evalkit report mix -o '$(OUT)-mix'

test: $(READY)  ## unit, property, doctest, oracles, types, style, and nbval over every notebook
	$(VENV) -m pytest
	$(VENV) -m mypy
	$(VENV) -m ruff check

lab: $(READY)  ## JupyterLab on the tutorials
	$(VENV) -m jupyter lab notebooks

outputs: $(READY)  ## re-execute every notebook in place; no byte changes when nothing changed
	$(VENV) -m jupyter nbconvert --to notebook --execute --inplace --log-level=ERROR --ExecutePreprocessor.record_timing=False \
	  --ClearMetadataPreprocessor.enabled=True --ClearMetadataPreprocessor.clear_cell_metadata=False \
	  --ClearMetadataPreprocessor.preserve_nb_metadata_mask="{'kernelspec', ('language_info', 'name')}" $(NOTEBOOKS)

class: $(READY)  ## the tutorials without outputs and solutions, for a teacher
	$(VENV) -m evalkit.lesson class

docs: $(READY)  ## the pictures and the sample page of the README, and the page of formats
	$(VENV) docs/make.py
	$(VENV) docs/make_formats.py

test-long: $(READY)  ## the full grids that the default tests sample
	EVALKIT_LONG=1 $(VENV) -m pytest tests/test_draw.py tests/test_calibration.py tests/test_properties.py tests/test_model.py tests/test_no_rot.py

test-second-look: $(READY)  ## each statistic against scipy, statsmodels or exact enumeration
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/second_look/requirements.txt
	$(VENV) -m pytest -o addopts= tests/second_look

test-engines: $(READY)  ## PySpark and Dask in local mode (Java 17 or newer for Spark)
	$(VENV) -m pip install --quiet --disable-pip-version-check --requirement tests/engines/requirements.txt
	$(VENV) -m pytest -o addopts= tests/engines

test-browser: $(READY)  ## JupyterLab and the report pages in headless Chromium; screenshots/ to look at
	sh tests/browser/chromium.sh
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/browser/requirements.txt
	$(VENV) -m pytest -o addopts= tests/browser tests/test_binder.py

test-faults: $(READY)  ## the runner killed at random moments, without room, with a dead kernel; KILLS=20 for less
	EVALKIT_KILLS=$(KILLS) $(VENV) -m pytest -o addopts= tests/faults

bench: $(READY)  ## beside what one would use instead: docs/bench.md, its picture and the table in the README; ROWS="4 9" for some
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/bench/requirements.txt
	$(VENV) -m tests.bench $(ROWS)

bench-long: $(READY)  ## the rows that take long: 10^8 rows, Spark and Dask, make test
	$(MAKE) bench ROWS=--long

fuzz: $(READY)  ## bytes and values that nobody wrote, into every reader, record and parameter; RUNS=20000 TARGETS="tables rule" for less
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/fuzz/requirements.txt
	$(VENV) tests/fuzz/run.py $(if $(RUNS),--runs $(RUNS)) $(TARGETS)

mutants: $(READY)  ## one small change of the core at a time, and some test must fail; MODULES="reductions" for less
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/mutants/requirements.txt
	$(VENV) tests/mutants/run.py $(MODULES)

matrix: $(READY)  ## every supported Python that is installed, with the oldest and the newest packages
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/matrix/requirements.txt
	$(VENV) -m nox

$(READY): binder/requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(VENV) -m pip install --quiet --disable-pip-version-check --requirement binder/requirements.txt
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

clean:
	rm -rf .venv report report-mix class screenshots .pytest_cache .mypy_cache .ruff_cache .hypothesis
