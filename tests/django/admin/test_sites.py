# SPDX-License-Identifier: MIT
"""The pages on an admin site of their own, for runs that live in another database."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.test import Client, override_settings
from django.urls import include, path

from tests.django.admin import stage
from tests.django.shop import tasks
from tests.docs.test_readme import blocks
from tests.support import Db


@pytest.fixture
def elsewhere() -> Iterator[Any]:
    """The code of docs/how-to/django-admin.md, with its site below /reports/."""
    [code] = [block for block in blocks("docs/how-to/django-admin.md", "python") if "Site" in block]
    made: dict[str, Any] = {}
    exec(code.replace('"reports"\n', '"other"\n', 1), made)  # noqa: S102 -- it is ours.
    site = made["reports_site"]
    assert isinstance(site, AdminSite)
    urls = ModuleType("tests.django.elsewhere_urls")
    both = [path("reports/", site.urls), path("", include("tests.django.urls"))]
    urls.urlpatterns = both  # type: ignore[attr-defined]
    sys.modules[urls.__name__] = urls
    with override_settings(ROOT_URLCONF=urls.__name__):
        yield made
    del sys.modules[urls.__name__]


def test_a_separate_site_shows_the_other_database(elsewhere: Any, root: Client, db: Db) -> None:
    assert elsewhere["ReportRuns"].database == "other"
    here, there = stage.ready(), tasks.echo.using(backend="apart").enqueue().id

    page = root.get("/reports/byrote/run/").content.decode()
    detail = root.get(f"/reports/byrote/run/{there}/change/").content.decode()
    root.post(f"/reports/byrote/run/{there}/do/cancel/")

    assert there in page
    assert here not in page
    assert f'action="/reports/byrote/run/{there}/do/cancel/"' in detail
    assert tasks.echo.using(backend="apart").get_result(there).run.status == "CANCELLED"
    assert root.get(f"/admin/byrote/run/{there}/change/").status_code == 404
