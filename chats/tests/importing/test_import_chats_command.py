"""`manage.py import_chats`: exports of any size, for one person."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from chats.models import Chat
from chats.tests.importing import exports
from chats.tests.rows import new_assistant


@pytest.fixture
def run(alice):
    def run(*arguments, email=alice.user.email, organization=alice.organization.slug):
        out, err = StringIO(), StringIO()
        given = ["import_chats", *map(str, arguments), "--email", email]
        given += ["--organization", organization] if organization else []
        call_command(*given, stdout=out, stderr=err)
        return out.getvalue() + err.getvalue()

    return run


def test_a_zip_a_folder_and_a_file_are_taken_in_once(alice, run, tmp_path):
    archive = tmp_path / "export.zip"
    archive.write_bytes(exports.chatgpt_zip())
    assert "2 new, 0 already here, 0 refused" in run(archive)
    folder = tmp_path / "export"
    (folder / "deep").mkdir(parents=True)
    text = json.dumps([exports.chatgpt_conversation(), 5])
    (folder / "deep" / "conversations-000.json").write_text(text)
    (folder / "file_00ab.png").write_bytes(exports.PNG)
    said = run(folder)
    assert "0 new, 1 already here, 1 refused" in said
    assert "refused: (no name): It has none of the forms" in said
    single = tmp_path / "chat.json"
    single.write_text(json.dumps(exports.openai_messages()))
    assert "1 new" in run(single)
    assert "1 new" in run(single, "--again")
    chats = Chat.objects.all()
    assert {(chat.user, chat.organization) for chat in chats} == {(alice.user, alice.organization)}
    assert len(chats) == 4


def test_tells_what_was_lost_and_what_to_do(alice, run, tmp_path):
    single = tmp_path / "chat.json"
    single.write_text(json.dumps([exports.open_webui_chat()]))
    said = run(single)
    assert "not taken: citation (2)" in said
    assert "has no assistant that you may use" in said
    assert "Will it rain?" not in said


def test_gives_the_chats_an_assistant_that_the_person_may_use(alice, bob, run, tmp_path):
    single = tmp_path / "chat.json"
    single.write_text(json.dumps(exports.openai_messages()))
    own = new_assistant(alice)
    assert "no assistant" not in run(single, "--assistant", own.pk)
    assert Chat.objects.get().assistant == own
    with pytest.raises(CommandError, match="does not exist"):
        run(single, "--assistant", new_assistant(bob).pk)


def test_refuses_what_it_cannot_do(alice, run, tmp_path):
    with pytest.raises(CommandError, match="There is no member"):
        run(tmp_path, email="nobody@example.org")
    with pytest.raises(CommandError, match="several organizations"):
        run(tmp_path, organization=None)
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "absent.json")
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps([exports.chatgpt_conversation()])[:-1])
    with pytest.raises(CommandError, match="broken off"):
        run(broken)
    assert Chat.objects.count() == 1  # what came before stays
    with pytest.raises(CommandError, match="more than 10 bytes"):
        run(broken, "--max-bytes", 10)
