# Two commands are all a newcomer needs: `make demo` and `make test`. Each makes .venv first when it is missing.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

.PHONY: demo test check format bench docs clean

demo: $(READY)
	$(VENV)/bin/rotarymae demo

test: $(READY)
	$(VENV)/bin/python -m pytest -n 2 --dist worksteal -q

check: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright

format: $(READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(READY)
	$(VENV)/bin/mkdocs build --strict

bench: $(READY)
	$(VENV)/bin/python -m benchmarks

# torch first and on its own: an exact version takes the build the machine's package index offers (CPU or CUDA),
# a range would take the newest.
$(READY): pyproject.toml experiments/pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,all,docs]' --editable experiments
	touch $(READY)

clean:
	rm -rf $(VENV) build dist src/*.egg-info experiments/src/*.egg-info experiments/build
