"""What a first start does before anything runs: requirements, settings, the tables; and the image's health."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings as django_settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.templatetags.static import static

from amber import database_roles
from amber.embedded.postgres import programs_folder
from amber.setup import container_health, requirements
from tests.fixtures.databases import drop_database, migrated, own_database

ROOT = Path(__file__).parents[2]
ROWS = (
    "SELECT app, name FROM django_migrations ORDER BY 1, 2",
    "SELECT app_label, model FROM django_content_type ORDER BY 1, 2",
    "SELECT codename, name FROM auth_permission ORDER BY 1, 2",
)


@pytest.fixture
def new_database() -> Iterator[str]:
    name = f"amber_new_{secrets.token_hex(4)}"
    yield own_database(name)
    drop_database(name)


def schema_of(url: str) -> list[str]:
    """Return the lines of a dump, but for the two that hold a random word."""
    programs = programs_folder()
    assert programs is not None
    dump = [str(programs / "pg_dump"), "--schema-only", url]
    said = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if "restrict" not in line]


def test_a_new_database_gets_just_what_djangos_own_command_makes(new_database):
    """Amber's, as all tests use it, makes only the changed model's class anew where Django makes dozens."""
    environ = os.environ | {"DATABASE_URL": new_database}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=environ, check=True)
    with psycopg.connect(new_database) as made, made.cursor() as cursor:
        database_roles.make_roles(cursor, {})
        database_roles.arrange(cursor)
    base, _, query = os.environ["DATABASE_URL"].partition("?")
    quick = f"{base.rpartition('/')[0]}/{migrated()}?{query}"
    assert schema_of(new_database) == schema_of(quick)
    with psycopg.connect(new_database) as one, psycopg.connect(quick) as other:
        for rows in ROWS:
            assert one.execute(rows).fetchall() == other.execute(rows).fetchall()


@pytest.mark.parametrize(
    ("keys", "told"),
    [(None, "There is no installation in"), ("short", "Key 1 of AMBER_SECRET_KEYS")],
)
def test_a_command_with_wrong_settings_says_so_without_a_traceback(tmp_path, keys, told):
    environ = {name: value for name, value in os.environ.items() if name != "AMBER_SECRET_KEYS"}
    environ |= {"AMBER_VAR_DIR": str(tmp_path)} | ({"AMBER_SECRET_KEYS": keys} if keys else {})
    command = [sys.executable, "manage.py", "rotate_secrets"]
    run = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert run.returncode == 1
    assert told in run.stderr
    assert "AMBER_SECRET_KEYS" in run.stderr
    assert "Traceback" not in run.stderr


def test_requirements_are_counted_and_complaints_kept_for_a_failure(tmp_path, monkeypatch, capsys):
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("a==1\nb==2\n# c\n")
    lines = ["Collecting a==1", "Collecting b==2", "Installing collected packages: a, b"]
    pip = f"import sys; print({chr(10).join(lines)!r}); print('WARNING: odd', file=sys.stderr)"
    monkeypatch.setattr(requirements, "EVERY", 1)
    with (tmp_path / "log").open("w+") as log:
        status = requirements.install([sys.executable, "-c", pip], 2, log)
        log.seek(0)
        kept = log.read()
    said = capsys.readouterr()
    assert status == 0
    assert "Fetching requirements: 2 of 2" in said.out
    assert "WARNING" not in said.out + said.err
    assert "WARNING: odd" in kept


@pytest.mark.parametrize(("python", "said"), [("", "needed."), ("false", "needed: false is none.")])
def test_a_python_that_is_too_old_makes_no_environment(tmp_path, python, said):
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(
        ["make", "run", f"PYTHON={python}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert f"Python 3.11 or newer is {said}" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_an_environment_of_an_older_python_is_to_be_removed(monkeypatch, capsys):
    monkeypatch.setattr(requirements, "OLDEST", (9, 0))
    assert requirements.main(ROOT / "requirements.txt") == 1
    assert f"{sys.prefix} is of an older Python than 9.0. Remove it" in capsys.readouterr().err


def test_a_container_is_as_well_as_the_roles_that_run_in_it(tmp_path, monkeypatch):
    for pid, line in (("7", "python\0-m\0amber.worker\0chat\0--threads\0128"), ("8", "sh")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cmdline").write_text(line)
    assert container_health.running_roles(tmp_path) == ["chat"]
    monkeypatch.setattr(container_health, "running_roles", lambda _: [])
    assert container_health.main() == 1, "nothing runs"
    monkeypatch.setattr(container_health, "running_roles", lambda _: ["web"])
    monkeypatch.setenv("AMBER_PORT", "1")
    assert container_health.main() == 1, "the web does not answer"


def test_the_image_looks_after_its_health_and_publishes_its_static_files():
    said = (ROOT / "Dockerfile").read_text()
    assert (
        'HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-m", "amber.setup'
        in said
    )
    assert "manage.py collectstatic" in said


def test_published_static_files_are_named_by_their_content_and_compressed(tmp_path, settings):
    others = ["unfold", "drf_spectacular_sidecar", "account*", "js"]
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = django_settings.STORAGES | {
        "staticfiles": {"BACKEND": "amber.web.static_files.PublishedStaticFiles"}
    }
    call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=others)
    assert staticfiles_storage.exists("amber-widget.js"), "pages of others link to this name"
    address = static("amber-widget.js").removeprefix("/static/")
    assert address != "amber-widget.js"
    assert (tmp_path / f"{address}.gz").exists()
    assert static("no/such.css") == "/static/no/such.css"
