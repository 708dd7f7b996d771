# One line each over `uv run`; pre-commit and CI call the same.
.PHONY: check test test-core test-312 bench bench-peers fuzz docs lock

check:
	uv run ruff format --check . && uv run ruff check . && uv run mypy && uv run lint-imports --no-cache
test:
	uv run pytest
test-core:
	uv run pytest tests/core -n 0
test-312:
	UV_PROJECT_ENVIRONMENT=.venv-3.12 uv run --python 3.12 pytest
bench:
	uv run byrote bench
bench-peers:
	uv run python -m bench.peers
fuzz:
	uv run python -W ignore -m tests.service.fuzz --examples 1000
docs:
	uv run python -m tests.pages
lock:
	uv export --quiet --all-extras --no-extra django52 --no-emit-project --no-header --no-annotate --output-file requirements.lock
