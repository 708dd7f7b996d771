# One line each over `uv run`; pre-commit and CI call the same.
MATRIX = uv run --isolated --no-dev --group test --extra embedded
RELEASE = bench/results/release
SEEDS ?= 1000000

.PHONY: help check test test-core test-312 test-mac-like test-browser test-django sim model bench bench-django bench-peers fuzz docs lock release-proof

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
check: ## format, lint, types and layers, as CI checks them
	uv run ruff format --check . && uv run ruff check . && uv run mypy && uv run lint-imports --no-cache
test: ## the whole suite, on a PostgreSQL that it starts itself
	uv run pytest
test-core: ## the pure tests only: seconds, no database
	uv run pytest -m pure -n 0
test-312: ## the whole suite on Python 3.12
	UV_PROJECT_ENVIRONMENT=.venv-3.12 uv run --python 3.12 pytest
test-mac-like: ## the tests of workers, executors and the embedded server without the functions of Linux
	PYTHONPATH=tests/system/mac_like uv run pytest tests/system/test_system.py tests/system/test_on_a_mac.py tests/worker tests/executors tests/embedded --deselect tests/executors/commands
test-browser: ## the Django admin in chromium
	uv run --group browser pytest tests/django/admin/browser -n 0
test-django: ## the Django tests on 5.2, 6.0 and 6.1
	$(MATRIX) --extra django52 pytest tests/django
	$(MATRIX) --with 'django==6.0.*' pytest tests/django
	$(MATRIX) --with 'django==6.1.*' --with django-tasks-db==0.13.0 pytest tests/django tests/docs/test_from_django_tasks_db.py
sim: ## simulate SEEDS worlds, or the one of SEED
	uv run python -m tests.sim $(SEEDS) $(SEED)
model: ## compare the store with its model, 4,000 examples
	BYROTE_TEST_MODEL_EXAMPLES=4000 uv run pytest tests/sim/test_model.py -n 0
bench: ## measure this machine and this version
	uv run byrote bench
bench-django: ## measure beside django-tasks-db
	uv run --with django-tasks-db==0.13.0 python -m bench.django
bench-peers: ## measure other task queues beside Byrote
	uv run python -m bench.peers
fuzz: ## send generated requests to every route of the service
	uv run python -W ignore -m tests.service.http.fuzz --examples 1000
docs: ## generate docs/reference/cli.md, messages.md, python.md and the table of settings.md
	uv run python -m tests.cli.pages
	uv run python -m tests.service.pages
	uv run python -m tests.api.pages
	uv run python -m tests.assembly.pages
lock: ## renew requirements.lock
	uv export --quiet --all-extras --no-extra django52 --no-emit-project --no-header --no-annotate --output-file requirements.lock
# Each part may be done alone.
release-proof: ## about two hours on an idle machine: torture, model and simulation
	mkdir -p $(RELEASE)
	-uv run byrote torture --minutes 60 --runs 200000 --faults 400 --seed 1 --json > $(RELEASE)/torture.json
	-uv run byrote torture --calm --minutes 20 --runs 500000 --seed 2 --json > $(RELEASE)/calm.json
	-BYROTE_TEST_MODEL_EXAMPLES=4000 uv run pytest tests/sim/test_model.py -n 0 -o junit_family=xunit1 --junitxml=$(RELEASE)/model.xml
	-uv run python -m tests.sim $(SEEDS) > $(RELEASE)/sim.txt
	uv run python -m bench.release $(RELEASE) > docs/reference/proof.md
