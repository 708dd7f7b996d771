# SPDX-License-Identifier: MIT
"""The instructions of the pages about running a Django project work as written."""

import configparser
import json
import re
import shlex

import pytest

from byrote.django.models import PeriodicTask, Queue, Run, Worker
from byrote.django.worker.command import worker
from tests.docs.test_readme import ROOT, blocks

PAGES = ["django-admin", "from-celery", "from-rq", "django-deploy", "pgbouncer"]


def page(name: str) -> str:
    return f"docs/how-to/{name}.md"


def text_of(name: str) -> str:
    return (ROOT / page(name)).read_text(encoding="utf-8")


def ini(name: str) -> configparser.ConfigParser:
    """The unit in django-deploy.md whose first line names this file."""
    found = blocks(page("django-deploy"), "ini")
    [unit] = [block for block in found if block.startswith(f"# {name}")]
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit)
    return parser


def worker_commands() -> dict[str, list[str]]:
    """Every `byrote worker` command of the pages, by its position."""
    found = {}
    for name in PAGES:
        for line in re.findall(r"manage\.py byrote worker(?!s)([^`\n|]*)", text_of(name)):
            found[f"{name}: {line.strip()}"] = shlex.split(line)
    manifest = re.search(r'"byrote", "worker"(.*?)\]\n\s+args: (\[.*?\])', text_of("django-deploy"))
    assert manifest is not None
    first = json.loads(f"[{manifest.group(1).lstrip(', ')}]")
    found["manifest"] = first + json.loads(manifest.group(2))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", text_of(name))

    assert targets
    gone = [target for target in targets if not (ROOT / "docs" / "how-to" / target).exists()]
    assert gone == []


@pytest.mark.parametrize("name", PAGES)
def test_code_of_a_page_is_python(name: str) -> None:
    for block in blocks(page(name), "python"):
        compile(block, name, "exec")


def test_the_worker_takes_every_command_line_that_a_page_shows() -> None:
    found = worker_commands()

    assert len(found) >= 7
    for words in found.values():
        worker.make_context("worker", list(words))


def test_stopping_a_worker_waits_longer_than_its_grace() -> None:
    service = ini("/etc/systemd/system/shop-worker@.service")["Service"]
    grace = re.search(r"--grace (\d+)s", service["ExecStart"])
    pod = re.search(r"terminationGracePeriodSeconds: (\d+)", text_of("django-deploy"))
    asked = re.search(r'"--grace", "(\d+)s"', text_of("django-deploy"))

    assert grace is not None
    assert int(service["TimeoutStopSec"]) > int(grace.group(1))
    assert pod is not None
    assert asked is not None
    assert int(pod.group(1)) > int(asked.group(1))


def test_units_are_whole() -> None:
    unit = ini("/etc/systemd/system/shop-worker@.service")
    assert unit["Install"]["WantedBy"]
    assert unit["Service"]["Restart"] == "always"


def test_the_admins_page_names_every_permission_there_is() -> None:
    there = set()
    for model in (Run, Queue, Worker, PeriodicTask):
        meta = model._meta
        there |= {f"byrote.{name}_{meta.model_name}" for name in meta.default_permissions}
        there |= {f"byrote.{name}" for name, _ in meta.permissions}
    named = set(
        re.findall(r"byrote\.\w+_(?:run|queue|worker|periodictask)\b", text_of("django-admin"))
    )

    assert named == there
