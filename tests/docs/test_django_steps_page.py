# SPDX-License-Identifier: MIT
"""docs/how-to/django-steps.md in a fresh project: a task that sleeps, waits and is signalled."""

from pathlib import Path

from tests.docs.test_django_pages import files, folder, run  # noqa: F401 -- a fixture, too.
from tests.support import until

SETTINGS = """
INSTALLED_APPS += ["byrote.django", "shop"]
TASKS = {"default": {"BACKEND": "byrote.django.Backend"}}
"""
SHOW = """
from django.tasks import default_task_backend as b
r = b.get_result('{id}')
print('status', r.status, r.run.wait_reason, r.run.labels)
print('value', r.return_value if r.status == 'SUCCESSFUL' else None)
from shop.models import Receipt; print('receipts', Receipt.objects.count())
"""


def test_the_page_as_it_stands(folder: Path) -> None:  # noqa: F811 -- the fixture.
    with (folder / "site_" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    for name, text in files("docs/how-to/django-steps.md").items():
        (folder / name).write_text(text, encoding="utf-8")
    run(folder, "manage.py", "makemigrations", "shop", "--verbosity", "0")
    run(folder, "manage.py", "migrate", "--verbosity", "0")
    calls = "from shop.orders import *; from shop.tasks import *; print('id', place(7, 'acme').id)"
    calls += "; print('id', report.enqueue([1, 2]).id); print('id', greet.enqueue('Ada').id)"
    calls += "; print('gone', withdraw(place(8, 'acme').id))"
    said = shell(folder, calls)
    ids = [line[3:] for line in said.splitlines() if line.startswith("id ")]
    run(folder, "manage.py", "byrote", "worker", "--drain", "--no-reload")
    until(lambda: "status READY event" in drained(folder, ids[0]), within=120, every=0.1)
    approved = shell(folder, f"from shop.orders import *; print(approve('{ids[0]}', 'Eve'))")
    shown = drained(folder, ids[0])

    assert "gone True" in said
    assert "True" in approved
    assert "status SUCCESSFUL None {'tenant': 'acme'}" in shown
    assert "value {'receipt': 1007, 'by': 'Eve'}" in shown
    assert "receipts 1" in shown
    assert "value 3" in shell(folder, SHOW.format(id=ids[1]))
    assert "value Hello, Ada" in shell(folder, SHOW.format(id=ids[2]))


def drained(folder: Path, run_id: str) -> str:  # noqa: F811 -- the same.
    run(folder, "manage.py", "byrote", "worker", "--drain", "--no-reload")
    return shell(folder, SHOW.format(id=run_id))


def shell(folder: Path, code: str) -> str:  # noqa: F811 -- the same.
    return run(folder, "manage.py", "shell", "--command", code)
