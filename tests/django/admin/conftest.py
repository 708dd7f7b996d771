# SPDX-License-Identifier: MIT
"""Users of the admin, and runs in every state."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.support import Db

FORGET = """
delete from django_admin_log; delete from auth_user_user_permissions; delete from django_session;
delete from auth_user;
"""


@pytest.fixture
def db(shop: dict[str, str]) -> Iterator[Db]:
    """A connection of the test's own to the database of the project."""
    with psycopg.connect(shop["SHOP_DATABASE"], autocommit=True) as connection:
        yield connection


@pytest.fixture(autouse=True)
def _nobody(db: Db) -> Iterator[None]:
    """What a test leaves of people is gone before the next."""
    yield
    db.execute(FORGET)


@pytest.fixture
def root(shop: dict[str, str]) -> Client:
    """A user with every permission."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def person(*permissions: str, sees: tuple[str, ...] = ("view_run", "view_queue")) -> Client:
    """A staff user who may see these pages and has these further permissions."""
    user = User.objects.create_user("-".join(["ada", *permissions]), is_staff=True)
    wanted: Any = Permission.objects.filter(
        content_type__app_label="byrote", codename__in=[*sees, *permissions]
    )
    assert len(wanted) == len(sees) + len(permissions)
    user.user_permissions.set(wanted)
    client = Client()
    client.force_login(user)
    return client
