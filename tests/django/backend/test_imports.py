# SPDX-License-Identifier: MIT
"""What a project pays that only has Byrote in its settings: every command of it imports this much.

Counted in modules and not in milliseconds, which depend on the machine; docs/reference/figures.md
has those.
"""

import json
import subprocess
import sys

from tests.django.driving import ROOT

SET_UP = """
import json, sys
from django.conf import settings
admin = ["contenttypes", "auth", "sessions", "messages", "admin"]
apps = [f"django.contrib.{name}" for name in admin] if "admin" in sys.argv else []
backport = ["django_tasks"] if __import__("django").VERSION < (6, 0) else []
settings.configure(
    INSTALLED_APPS=[*apps, *backport, "byrote.django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}},
    TASKS={"default": {"BACKEND": "byrote.django.Backend"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    USE_TZ=True,
)
import django
django.setup()
if "check" in sys.argv:
    from django.core.checks import run_checks
    assert not [one for one in run_checks() if one.id.startswith("byrote")]
if "template" in sys.argv:
    from django.template import engines
    engines["django"].from_string("").render()
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = ("cli", "worker", "executors", "service", "sdk", "embedded", "artifacts", "observe", "wire")


def imported(*how: str) -> set[str]:
    """Modules that a process has after django.setup()."""
    done = subprocess.run(
        [sys.executable, "-c", SET_UP, *how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("byrote.")}


def test_set_up_imports_the_app_and_its_models_and_nothing_else() -> None:
    modules = imported()

    assert rooms(modules) == {"django", "core", "exports"}
    assert {name for name in modules if name.startswith("byrote.core.")} == {"byrote.core.state"}
    assert not {"msgspec", "click", "byrote.django.backend.backend"} & modules


def test_a_project_without_the_admin_renders_templates_and_imports_little_for_it() -> None:
    modules = imported("template")

    assert rooms(modules) == {"django", "core", "exports"}
    assert not {"msgspec", "byrote.django.admin"} & modules


def test_neither_the_admin_nor_the_checks_import_what_executes() -> None:
    modules = imported("admin", "check")

    assert not set(HEAVY) & rooms(modules)
    assert not {"click", "psycopg_pool", "byrote.assembly.app", "byrote.store.migrate"} & modules
