"""Migrations since the release before break no rule; each rule finds a made-up migration that breaks it."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.state import ModelState, ProjectState

from accounts.tenancy.wall import build_wall
from tests.house.migration_rules import LARGE, RELEASED, RULES, all_faults, faults_of

FLAG = models.BooleanField(default=False)
NEW_FLAG = models.BooleanField(default=False, db_default=False)
INDEX = models.Index(fields=["name"], name="by_name")
CHECK = models.CheckConstraint(condition=models.Q(name__gt=""), name="named")
NEW = migrations.CreateModel(
    "Note",
    [("id", models.BigAutoField(primary_key=True)), ("name", models.CharField(max_length=10))],
)


def build(apps, schema_editor):
    build_wall(schema_editor.connection)


def fill(apps, schema_editor):
    apps.get_model("chats", "chat").objects.update(name="")


def forget(field: str) -> migrations.SeparateDatabaseAndState:
    return migrations.SeparateDatabaseAndState(
        state_operations=[migrations.RemoveField("chat", field)]
    )


def state() -> ProjectState:
    """A large table, `chats.chat`, and a small one."""
    made = ProjectState()
    for name in ("chat", "kind"):
        fields: list[tuple[str, Any]] = [
            ("id", models.BigAutoField(primary_key=True)),
            ("name", models.CharField(max_length=10)),
            ("note", models.TextField(null=True)),
            ("code", models.IntegerField(db_default=1)),
        ]
        made.add_model(ModelState("chats", name, fields))
    return made


def broken(*operations: object, **attributes: object) -> list[str]:
    migration = SimpleNamespace(app_label="chats", operations=list(operations), **attributes)
    return [fault.rule for fault in faults_of(migration, state())]


def name_of(each: object) -> str:
    return each if isinstance(each, str) else type(each).__name__


BAD = [
    ("removes", migrations.RemoveField("kind", "name")),
    ("removes", migrations.DeleteModel("kind")),
    ("renames", migrations.RenameField("kind", "name", "title")),
    ("renames", migrations.RenameModel("kind", "sort")),
    ("renames", migrations.AlterModelTable("kind", "chats_sort")),
    (
        "renames",
        migrations.AlterField("kind", "name", models.CharField(max_length=10, db_column="title")),
    ),
    ("needs_value", migrations.AddField("kind", "flag", FLAG)),
    ("needs_value", migrations.AlterField("kind", "note", models.TextField())),
    ("needs_value", migrations.AlterField("kind", "code", models.IntegerField())),
    ("rewrites", migrations.AlterField("kind", "code", models.TextField(db_default="1"))),
    ("rewrites", migrations.AlterField("kind", "name", models.CharField(max_length=9))),
    ("indexes", migrations.AddIndex("chat", INDEX)),
    ("indexes", migrations.AddField("chat", "mark", models.TextField(null=True, db_index=True))),
    (
        "indexes",
        migrations.AlterField("chat", "name", models.CharField(max_length=10, unique=True)),
    ),
    ("indexes", migrations.AlterUniqueTogether("chat", {("name", "note")})),
    ("validates", migrations.AddConstraint("chat", CHECK)),
    ("runs_code", migrations.RunPython(fill)),
    ("runs_code", migrations.RunSQL("DROP TABLE chats_kind")),
    ("keeps_column", forget("name")),
]
GOOD = [
    migrations.AddField("chat", "flag", NEW_FLAG),
    migrations.AddField("chat", "mark", models.TextField(null=True)),
    migrations.AlterField("chat", "name", models.CharField(max_length=20)),
    migrations.AlterField("chat", "name", models.TextField()),
    migrations.AddIndex("kind", INDEX),
    AddConstraintNotValid("chat", CHECK),
    migrations.RunPython(build),
    forget("note"),
    forget("code"),
]


def test_migrations_since_the_release_before_break_no_rule():
    found = {name: faults for name, faults in all_faults().items() if faults}
    assert found == {}, "docs/operations.md says what a migration may do"


def test_what_has_been_released_is_looked_at_with_an_older_release():
    """The walk over real migrations finds what the rules find."""
    older = RELEASED | {"chats": "0018_failed_turns"}
    found = all_faults(older)
    assert {fault.rule for fault in found["chats.0019_fair_turns"]} == {"indexes"}


@pytest.mark.parametrize(("rule", "operation"), BAD, ids=name_of)
def test_a_rule_finds_what_breaks_it(rule, operation):
    assert rule in broken(operation)
    assert rule not in broken(operation, excused={rule: "It is known."})


def test_each_rule_is_tried():
    assert {rule for rule, _ in BAD} == RULES.keys()


@pytest.mark.parametrize("operation", GOOD, ids=name_of)
def test_what_both_releases_can_live_with_is_let_through(operation):
    assert broken(operation) == []


def test_a_table_of_this_release_may_be_treated_as_one_likes():
    changes = [
        migrations.AddField("note", "flag", FLAG),
        migrations.RenameField("note", "name", "title"),
        migrations.RemoveField("note", "title"),
    ]
    assert broken(NEW, *changes) == []


def test_concurrent_indexes_have_a_migration_of_their_own():
    concurrent = AddIndexConcurrently("chat", INDEX)
    assert broken(concurrent) == []
    assert broken(concurrent, migrations.AddField("chat", "flag", NEW_FLAG)) == ["mixes"]


def test_an_excuse_that_is_not_needed_is_told():
    assert broken(migrations.AddField("chat", "flag", NEW_FLAG), excused={"removes": "?"}) == [
        "removes"
    ]


def test_large_tables_exist():
    assert {model._meta.label_lower for model in apps.get_models()} >= LARGE
