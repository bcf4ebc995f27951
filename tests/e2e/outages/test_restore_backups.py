"""Backup and restore of a whole platform: refused while it runs, and then as it was."""

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kit.platform import ROOT, Platform, started_platform
from tests.e2e.kit.transcripts import check_stored
from tests.fixtures.databases import EMPTY
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

MANY = 300_000
"""Rows that make dump and restore take seconds: time enough for a worker to write in between."""

FILL = f"""
INSERT INTO providers_usagerecord (id, created_at, updated_at, organization_id, kind, model,
    prompt_tokens, completion_tokens, cached_tokens, estimated, cost, latency_ms, outcome)
SELECT gen_random_uuid(), now(), now(), o.id, 'chat', 'm', 1, 1, 0, false, 0, 0, 'ok'
FROM (SELECT id FROM accounts_organization LIMIT 1) o, generate_series(1, {MANY})
"""


@pytest.fixture(scope="module")
def own_platform(fake_provider: RunningProvider) -> Iterator[Platform]:
    """Not the one that other tests share: this one is stopped and emptied. It begins with nothing."""
    with started_platform(fake_provider.base_url, template=EMPTY) as platform:
        yield platform


def manage(platform: Platform, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=ROOT,
        env=platform.environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def execute(platform: Platform, sql: str) -> None:
    platform.query(f"WITH done AS ({sql} RETURNING 1) SELECT count(*) FROM done")


def start_again(platform: Platform) -> None:
    platform.start_redis()
    platform.run("manage.py", "bootstrap")
    platform.start_web(platform.port)
    platform.start_member("chat")
    platform.start_member("ingest")
    platform.wait_until_ready()


def test_a_backup_comes_back_once_everything_has_stopped(own_platform, tmp_path):
    platform = own_platform
    ann = platform.new_person("ann", "Acme")
    asked = ann.ask("Remember me. [[fake tokens=5]]")
    check_stored(ann, asked, ann.watch(asked).to_the_end())
    before = ann.messages(asked.chat_id)
    (platform.home / "files").mkdir(exist_ok=True)
    (platform.home / "files" / "note").write_text("as it was")
    execute(platform, FILL)

    made = manage(platform, "backup", tmp_path)
    assert made.returncode == 0, made.stderr
    dump, files = tmp_path.glob("*.dump"), tmp_path.glob("*.files.tar")
    pair = (next(dump), next(files))
    assert {path.stat().st_mode & 0o777 for path in pair} == {0o600}
    assert platform.environ["AMBER_SECRET_KEYS"].encode() not in pair[1].read_bytes()

    later = ann.ask("After the backup. [[fake tokens=5]]")
    ann.ended(later.turn_id)
    (platform.home / "files" / "note").write_text("changed since")

    refused = manage(platform, "restore", *pair)
    assert refused.returncode == 1
    for name in ("amber web", "amber chat worker", "amber ingest worker"):
        assert name in refused.stderr
    assert f":{platform.web.pid}" in refused.stderr
    assert ann.messages(later.chat_id), "nothing was touched"
    assert platform.readiness() == 200

    platform.stop()
    broken = tmp_path / "broken.dump"
    broken.write_bytes(pair[0].read_bytes()[:-1])
    assert "is not the dump" in manage(platform, "restore", broken, pair[1]).stderr
    assert platform.query("SELECT 1 FROM chats_chat WHERE id = %s", later.chat_id)

    done = manage(platform, "restore", *pair)
    assert done.returncode == 0, done.stderr
    assert (platform.home / "files" / "note").read_text() == "as it was"
    [replaced] = platform.home.glob("files.replaced-*")
    assert (replaced / "note").read_text() == "changed since"
    assert not list(platform.home.glob("files.*.unpacked"))

    start_again(platform)
    assert ann.messages(asked.chat_id) == before
    assert ann.get(f"/api/v1/chats/{later.chat_id}/", is_checked=False).status == 404
    again = ann.ask("And now? [[fake tokens=5]]", chat_id=asked.chat_id)
    check_stored(ann, again, ann.watch(again).to_the_end())
    assert len(ann.messages(asked.chat_id)) == len(before) + 2
    [(rows,)] = platform.query("SELECT count(*) FROM providers_usagerecord WHERE model = 'm'")
    assert rows == MANY
    assert "Traceback" not in platform.log.read_text(errors="replace")


def test_a_restore_that_breaks_off_changes_nothing(own_platform, tmp_path):
    """The manifest promises a row that the dump has not: noticed before the commit."""
    platform = own_platform
    platform.stop()
    assert manage(platform, "backup", tmp_path).returncode == 0
    dump, files = next(tmp_path.glob("*.dump")), next(tmp_path.glob("*.files.tar"))
    with tarfile.open(files) as archive:
        taken = archive.extractfile("manifest.json")
        manifest = json.load(taken) if taken else {}
    manifest["rows"]["accounts_user"] += 1
    lying = _with_manifest(tmp_path / "lying.tar", files, manifest)
    execute(platform, "UPDATE accounts_organization SET name = 'Changed since'")
    done = manage(platform, "restore", dump, lying)
    assert done.returncode == 1
    assert "accounts_user does not have" in done.stderr
    assert platform.query("SELECT DISTINCT name FROM accounts_organization") == [("Changed since",)]
    assert (platform.home / "files" / "note").read_text() == "as it was"


def _with_manifest(path: Path, files: Path, manifest: object) -> Path:
    with tarfile.open(files) as archive, tarfile.open(path, "w") as made:
        for member in archive:
            said = archive.extractfile(member)
            data = json.dumps(manifest).encode() if member.name == "manifest.json" else None
            data = data or (said.read() if said else b"")
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return path
