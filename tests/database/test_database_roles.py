"""Roles and policies as operators get them: a new database, one of an older Amber, one role alone."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

from amber import database_roles, installation
from tests.fixtures.databases import ROOT, drop_database, migrated, own_database

SEEN = "SELECT count(*) FROM assistants_assistant"
GRANTED = "SELECT count(*) FROM amber_granted_assistants()"
OLDER = """
import django
django.setup()
from django.db import connection
from amber.setup.migration import _NewDatabaseExecutor
executor = _NewDatabaseExecutor(connection)
old = executor.loader.get_migration_by_prefix("public_api", "0002")
newest = executor.loader.graph.leaf_nodes
executor.migrate([(old.app_label, old.name), *newest("accounts"), *newest("chats"), *newest("operations")])
"""


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database's address, for the tests' superuser."""
    name = f"amber_roles_{secrets.token_hex(4)}"
    yield own_database(name)
    drop_database(name)


@pytest.fixture
def weak_login() -> Iterator[str]:
    """A login of the server that may do nothing but own a database."""
    name = f"weak_{secrets.token_hex(4)}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"CREATE ROLE {name} LOGIN".encode())
        yield name
        server.execute(f"DROP ROLE {name}".encode())


def bootstrap(addresses: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if "DATABASE_URL" not in name}
    return manage("bootstrap", environ=environ | addresses)


def manage(*command: str, environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "manage.py", *command]
    return subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def asked(url: str, statement: str, organization: Any = None, *, user: str = "*") -> Any:
    """The answer to whoever logs in so; with an organization for everybody in it, or for a user."""
    with psycopg.connect(url) as there:
        if organization is not None:
            for name, value in (("organization", organization), ("user", user)):
                there.execute("SELECT set_config(%s, %s, true)", [f"amber.{name}", str(value)])
        (answer,) = there.execute(statement.encode()).fetchone() or (None,)
        return answer


def as_login(url: str, name: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}"))


def test_a_new_database_has_three_roles_and_a_wall(url):
    addresses = installation.addresses_of_roles(url)
    done = bootstrap(addresses)
    assert (done.returncode, done.stderr) == (0, "")
    app, system = addresses["DATABASE_URL"], addresses["AMBER_SYSTEM_DATABASE_URL"]
    organization = asked(system, "SELECT organization_id FROM assistants_assistant")
    assert asked(app, SEEN, organization) == 1
    assert asked(app, SEEN, organization, user=str(uuid4())) == 1, "it is shared"
    assert asked(app, GRANTED, organization, user=str(uuid4())) == 0
    assert asked(app, SEEN, "00000000-0000-0000-0000-000000000000") == 0
    assert asked(system, SEEN) == 1
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        asked(app, SEEN)
    again = bootstrap(addresses)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_an_older_database_gets_both_and_keeps_its_rows(url):
    """One superuser, no policies, rows of people: what every installation had before."""
    alone = {"DATABASE_URL": url}
    before = os.environ | alone
    subprocess.run([sys.executable, "-c", OLDER], cwd=ROOT, env=before, check=True)
    make = ("create_account", "--email", "ann@example.com", "--organization", "Acme")
    assert manage(*make, environ=before).returncode == 0
    organization = asked(url, "SELECT id FROM accounts_organization WHERE name = 'Acme'")
    addresses = installation.addresses_of_roles(url)
    done = bootstrap(addresses)
    assert (done.returncode, done.stderr) == (0, "")
    app = addresses["DATABASE_URL"]
    assert asked(app, "SELECT count(*) FROM accounts_membership", organization) == 1
    assert asked(app, "SELECT row_security_active('accounts_membership')")
    owners = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner <> '{}'"
    assert asked(url, owners.format(database_roles.OWNER)) == 0


def test_one_role_starts_with_a_warning_and_sees_everything(url, weak_login):
    """It owns the database and has no privileges: nothing else than today is possible."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE EXTENSION vector")
        name = urlsplit(url).path.strip("/")
        server.execute(f"ALTER DATABASE {name} OWNER TO {weak_login}".encode())
    alone = {"DATABASE_URL": as_login(url, weak_login)}
    done = bootstrap(alone)
    assert done.returncode == 0, done.stderr
    assert "WARNING" in done.stderr
    assert "docs/security-model.md" in done.stderr
    assert asked(alone["DATABASE_URL"], SEEN) == 1
    assert not asked(alone["DATABASE_URL"], "SELECT row_security_active('chats_chat')")
    assert bootstrap(alone).returncode == 0
    drop_database(name)


def test_a_login_that_may_make_no_roles_is_told_what_to_ask_for(url, weak_login):
    name = urlsplit(url).path.strip("/")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE EXTENSION vector")
        server.execute(f"ALTER DATABASE {name} OWNER TO {weak_login}".encode())
    weak = as_login(url, weak_login)
    done = bootstrap(installation.addresses_of_roles(url) | {"AMBER_OWNER_DATABASE_URL": weak})
    assert done.returncode != 0
    assert "administrator" in done.stderr
    assert f'CREATE ROLE "{database_roles.APP}" LOGIN' in done.stderr
    drop_database(name)


def test_an_app_that_no_policy_binds_is_refused():
    """As a server's administrator may have made it before; here it is put back at once."""
    migrated()  # makes the roles
    with psycopg.connect(os.environ["DATABASE_URL"]) as server, server.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {database_roles.APP} BYPASSRLS".encode())
        with pytest.raises(database_roles.RolesMissing, match="No policy binds"):
            database_roles._check_rights(cursor, login="amber")
        server.rollback()


def test_logins_of_other_names_are_refused(url):
    addresses = installation.addresses_of_roles(url)
    done = bootstrap(addresses | {"DATABASE_URL": as_login(url, "somebody")})
    assert done.returncode != 0
    assert database_roles.APP in done.stderr


def test_the_tests_own_database_is_in_order():
    """Else every start would look for what to change."""
    migrated()
    address = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{migrated()}"))
    with psycopg.connect(address) as there, there.cursor() as cursor:
        assert database_roles.is_in_order(cursor)
