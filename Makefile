# Two commands set everything up on a machine with Python and pip:  make demo   and   make test
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
# Seconds that one test may take.
TIMEOUT ?= 600
BIN := $(VENV)/bin
PART := tests/engine/run/test_program.py tests/compiler/test_balanced.py
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

# BLAS threads of several processes on few cores slow each other down by orders of magnitude.
export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check lowest matrix vocabulary docs links gallery bench experiments clean

help:
	@echo "make demo   run the demonstration (pictures go to demo/)"
	@echo "make test   lint, types, import direction and tests"
	@echo "make check  the same without the tests"
	@echo "make lowest a part of the tests beside the lowest versions that pyproject.toml allows (in $(VENV)-lowest)"
	@echo "make matrix the same, and beside the highest versions with each Python from 3.11 to 3.14 that this machine has"
	@echo "make vocabulary  after a new factor: cv.<name>, and the tables in docs/ that name every factor"
	@echo "make docs   the documentation as HTML (docs/_build/html)"
	@echo "make links  every address that the documentation points to is asked for"
	@echo "make gallery  the pictures of docs/gallery.md and the README, from the page's code"
	@echo "make bench  the benchmarks (minutes; json in benchmarks/results, tables in docs/benchmarks)"
	@echo "make experiments  tables and figures of the literature on NCVMP, trees, factors, mixtures and binary features (hours; data in CAVITY_DATA)"
	@echo "make clean  remove build artefacts and caches; keeps $(VENV)"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp file for each extra: installing again only when the dependencies change.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python examples/demo.py

# A test that waits for ever fails by name with what its threads were doing, and the others run on.
test: check
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --timeout $(TIMEOUT) --timeout-method signal --durations 30

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache

# After a change of the dependencies: pip refuses what cannot be installed together, the tests what does not work.
lowest:
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
		| sed 's/>=/==/' > $(VENV)-lowest/versions.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-input --editable . pytest beartype --requirement $(VENV)-lowest/versions.txt
	$(VENV)-lowest/bin/python -m pytest -q $(PART)

# A Python that is not here, or has none of what is needed yet, is told and left out; one whose tests fail stops it.
matrix: lowest
	@for version in 3.11 3.12 3.13 3.14; do \
		python$$version -c "" 2> /dev/null || { echo "== Python $$version is not here"; continue; }; \
		echo "== Python $$version"; python$$version -m venv --clear $(VENV)-$$version; \
		$(VENV)-$$version/bin/python -m pip install --quiet --disable-pip-version-check --no-input --editable . pytest beartype hypothesis \
			|| { echo "== what is needed is not there for Python $$version"; continue; }; \
		$(VENV)-$$version/bin/python -m pytest -q $(PART) || exit 1; \
	done

vocabulary: $(VENV)/.installed-test
	$(BIN)/python docs/make_front_door.py
	$(BIN)/python docs/make_tables.py
	$(BIN)/python docs/make_coverage.py
	$(BIN)/python docs/make_conditionals.py
	$(BIN)/python docs/make_names.py
	$(BIN)/python docs/make_can_i_write.py

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -W --keep-going docs docs/_build/html

# Asks for every address outside of the site; needs the network, so that no test depends on it.
links: $(VENV)/.installed-docs
	CAVITY_DOCS_TUTORIALS=off $(BIN)/python -m sphinx -q -b linkcheck docs docs/_build/links

gallery: $(VENV)/.installed-docs
	$(BIN)/python docs/make_gallery.py

BENCHMARKS := skills ratings logistic mixture pca overhead chains clutter gamma_shape lda first_answer tempering gibbs

bench: $(VENV)/.installed-bench
	@for script in $(BENCHMARKS); do $(BIN)/python benchmarks/$$script.py || exit 1; done
	$(BIN)/python benchmarks/pages.py $(BENCHMARKS)

# Of the folders of experiments the files that are run themselves, not those that others import.
EXPERIMENTS := $(shell grep -l __main__ $(addprefix benchmarks/,ncvmp/*.py trees/*.py nsfa/*.py mixtures/*.py buffet/*.py))

# One that stops, for lack of its data or otherwise, does not stop the others; all that stopped are named at the end.
experiments: $(VENV)/.installed-bench
	@stopped=; for script in $(EXPERIMENTS); do \
		echo "== $$script"; $(BIN)/python $$script || stopped="$$stopped $$script"; done; \
	if [ -n "$$stopped" ]; then echo "These stopped before their end:$$stopped"; exit 1; fi

clean:
	rm -rf build dist *.egg-info docs/_build .pytest_cache .ruff_cache .hypothesis
