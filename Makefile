# One line each over `uv run`; pre-commit and CI call the same.
MATRIX = uv run --isolated --no-dev --group test --extra embedded

.PHONY: check test test-core test-312 test-browser test-django sim model bench bench-django bench-peers fuzz docs lock release-proof

check:
	uv run ruff format --check . && uv run ruff check . && uv run mypy && uv run lint-imports --no-cache
test:
	uv run pytest
test-core:
	uv run pytest tests/core -n 0
test-312:
	UV_PROJECT_ENVIRONMENT=.venv-3.12 uv run --python 3.12 pytest
test-browser:
	uv run --group browser pytest tests/django/admin/browser -n 0
test-django:
	$(MATRIX) --extra django52 pytest tests/django
	$(MATRIX) --with 'django==6.0.*' pytest tests/django
	$(MATRIX) --with 'django==6.1.*' --with django-tasks-db==0.13.0 pytest tests/django tests/docs/test_from_django_tasks_db.py
SEEDS ?= 1000000
sim:
	uv run python -m tests.sim $(SEEDS) $(SEED)
model:
	BYROTE_MODEL_EXAMPLES=4000 uv run pytest tests/sim/test_model.py -n 0
# About two hours on a machine that does nothing else; each part may be done alone.
RELEASE = bench/results/release
release-proof:
	mkdir -p $(RELEASE)
	-uv run byrote torture --minutes 60 --runs 200000 --faults 400 --seed 1 --json > $(RELEASE)/torture.json
	-uv run byrote torture --calm --minutes 20 --runs 500000 --seed 2 --json > $(RELEASE)/calm.json
	-BYROTE_MODEL_EXAMPLES=4000 uv run pytest tests/sim/test_model.py -n 0 -o junit_family=xunit1 --junitxml=$(RELEASE)/model.xml
	-uv run python -m tests.sim $(SEEDS) > $(RELEASE)/sim.txt
	uv run python -m bench.release $(RELEASE) > docs/reference/proof.md
bench:
	uv run byrote bench
bench-django:
	uv run --with django-tasks-db==0.13.0 python -m bench.django
bench-peers:
	uv run python -m bench.peers
fuzz:
	uv run python -W ignore -m tests.service.http.fuzz --examples 1000
docs:
	uv run python -m tests.cli.pages
lock:
	uv export --quiet --all-extras --no-extra django52 --no-emit-project --no-header --no-annotate --output-file requirements.lock
