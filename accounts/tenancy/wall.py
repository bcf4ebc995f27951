"""Declare the policies by which Postgres itself keeps tenants apart, whatever a view forgets.

`TABLES` names every table with tenants' rows and who may touch them; migrations
bring the database in line with it (`build_wall`). The settings that the policies read are set by
`amber.lib.postgres.base` from the tenant of the work under way (`amber.lib.database.tenant`). What
no setting allows is refused: without an organization a statement fails. The floor of each table
binds also whatever policy is added later.
https://www.postgresql.org/docs/18/ddl-rowsecurity.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_SETTING: Final = "current_setting('amber.{}', true)"
_ORGANIZATION: Final = f"(SELECT {_SETTING.format('organization')}::uuid)"
"""A subquery, so that it is computed once a statement. An empty setting is no uuid: it raises."""

_PERSON: Final = f"(SELECT {_SETTING.format('user')})"
"""A user's id, a guest's, `*` for everybody, or empty for nobody. Guests' ids are no uuids."""

_OF_ORGANIZATION: Final = f"organization_id = {_ORGANIZATION}"
_OF_PERSON: Final = f"{_PERSON} IN ('*', coalesce(guest_id, user_id::text))"


_KIND: Final = f"split_part({_SETTING.format('user')}, ':', 1)"
_SOMEBODY: Final = f"(SELECT {_KIND})"
"""A user's id, also for guests of their keys (`<id>:<name>`), `web` for guests of pages, `*`, or
empty."""

_NO_WEB_GUEST: Final = f"{_OF_ORGANIZATION} AND (SELECT {_KIND} NOT IN ('web', ''))"
"""Neither a visitor of a public assistant, nor somebody who looks at its card."""


@dataclass(frozen=True, slots=True)
class Wall:
    """Conditions on the rows of a table: who may read and write them, and the floor below that.

    `seen` adds rows that may be read and not written, also of other organizations; `changed` limits
    what of the rows that may be read may be written, too.
    """

    allowed: str
    floor: str
    seen: str = ""
    changed: str = ""


ORGANIZATION: Final = Wall(_OF_ORGANIZATION, _OF_ORGANIZATION)
PERSON: Final = Wall(_OF_PERSON, _OF_ORGANIZATION)
"""Rows with the columns `user_id` and `guest_id`."""
FILE: Final = Wall(f"{_OF_PERSON} OR (guest_id IS NULL AND user_id IS NULL)", _OF_ORGANIZATION)
"""The files of a library's documents are nobody's own."""
OF_CHAT: Final = Wall(
    "EXISTS (SELECT FROM chats_chat WHERE chats_chat.id = chat_id)", _OF_ORGANIZATION
)
"""Rows of a chat belong to whom the chat does; its own policies decide."""

NO_WEB_GUEST: Final = Wall(_NO_WEB_GUEST, _OF_ORGANIZATION)
"""What visitors of public assistants have nothing to do with."""


def _wall_of_shared(kind: str, *, to_web_guests: str = "false") -> Wall:
    """Rows private to their user (`user_id`) unless they are `shared`, or granted to a group that the
    person is in.

    What a guest of a key may use, its user may. Keys' guests are in no group, and who may change a
    row is more than who may use it: of both the door knows more (`SharedQuerySet`). Admins reach
    what any group was granted.
    """
    allowed = f"""CASE {_SOMEBODY} WHEN '*' THEN true
        WHEN 'web' THEN {to_web_guests} WHEN '' THEN {to_web_guests}
        ELSE shared OR user_id::text = {_SOMEBODY}
        OR id IN (SELECT public.amber_granted_{kind}()) END"""
    return Wall(
        allowed, _OF_ORGANIZATION, changed="" if to_web_guests == "false" else _NO_WEB_GUEST
    )


ASSISTANT: Final = _wall_of_shared("assistants", to_web_guests="public")
OF_ASSISTANT: Final = Wall(
    "(SELECT true FROM assistants_assistant WHERE assistants_assistant.id = assistant_id)",
    _OF_ORGANIZATION,
    changed=_NO_WEB_GUEST,
)
"""What belongs to an assistant is seen by those who see it. With EXISTS it would be planned two ways."""

# Whoever is in several organizations sees that they are.
_MEMBERSHIP: Final = Wall(_OF_ORGANIZATION, _OF_ORGANIZATION, seen=f"user_id::text = {_PERSON}")
_ITSELF: Final = Wall(
    f"id = {_ORGANIZATION}",
    f"id = {_ORGANIZATION}",
    seen="EXISTS (SELECT FROM accounts_membership AS mine"
    f" WHERE mine.organization_id = accounts_organization.id AND mine.user_id::text = {_PERSON})",
)


def _of(table: str, column: str) -> Wall:
    hangs = f"EXISTS (SELECT FROM {table} WHERE {table}.id = {column})"
    return Wall(hangs, hangs)


TABLES: Final[Mapping[str, Wall]] = {
    "accounts_organization": _ITSELF,
    "accounts_membership": _MEMBERSHIP,
    "accounts_invitation": NO_WEB_GUEST,
    "accounts_group": NO_WEB_GUEST,
    "accounts_groupmember": NO_WEB_GUEST,
    "accounts_apikey": NO_WEB_GUEST,
    "accounts_outgoingmail": ORGANIZATION,
    "accounts_idempotencyrecord": ORGANIZATION,
    "accounts_auditevent": NO_WEB_GUEST,
    "accounts_auditchain": NO_WEB_GUEST,
    "providers_usagerecord": ORGANIZATION,
    "providers_budget": ORGANIZATION,
    "providers_budgetcounter": _of("providers_budget", "budget_id"),
    "providers_budgetreservation": _of("providers_budgetcounter", "counter_id"),
    "memory_memory": PERSON,
    "libraries_file": FILE,
    "libraries_library": _wall_of_shared("libraries"),
    "libraries_librarygrant": ORGANIZATION,
    "libraries_repository": ORGANIZATION,
    "libraries_document": ORGANIZATION,
    "libraries_documentchunk": ORGANIZATION,
    "libraries_vectorsurvey": ORGANIZATION,
    "libraries_embedding": ORGANIZATION,
    "tools_tool": _wall_of_shared("tools"),
    "tools_toolgrant": ORGANIZATION,
    "tools_pasteddocument": ORGANIZATION,
    "tools_toolcallrecord": ORGANIZATION,
    "assistants_assistant": ASSISTANT,
    "assistants_assistantgrant": ORGANIZATION,
    "assistants_assistanttool": OF_ASSISTANT,
    "assistants_sceneprompt": OF_ASSISTANT,
    "chats_chat": PERSON,
    "chats_chatmessage": OF_CHAT,
    "chats_turn": PERSON,
    "chats_messageblock": OF_CHAT,
    "chats_feedback": OF_CHAT,
    "chats_erasure": ORGANIZATION,
    "public_api_webhook": NO_WEB_GUEST,
    "public_api_webhookdelivery": ORGANIZATION,
}


def build_wall(connection: Any) -> None:
    """Bring the policies of all tables in line with TABLES. Doing it twice does no harm.

    The functions that policies call must be there (`accounts.tenancy.wall_functions`).

    Tables that are not there yet are left to the migration that makes them.
    """
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
        for table in TABLES:
            if table in there:
                cursor.execute(wall_sql(table))


def wall_sql(table: str) -> str:
    """Return the statements that bring one table in line."""
    wall = TABLES[table]
    readable = f"({wall.floor}) OR ({wall.seen})"
    statements = [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS tenant ON {table}",
        f"CREATE POLICY tenant ON {table} USING ({wall.allowed}) WITH CHECK ({wall.allowed})",
        f"DROP POLICY IF EXISTS tenant_floor ON {table}",
        f"CREATE POLICY tenant_floor ON {table} AS RESTRICTIVE"
        f" USING ({readable if wall.seen else wall.floor}) WITH CHECK ({wall.floor})",
        f"DROP POLICY IF EXISTS tenant_seen ON {table}",
    ]
    if wall.seen:
        statements.append(f"CREATE POLICY tenant_seen ON {table} FOR SELECT USING ({wall.seen})")
    # What is only seen lies beyond the floor of what may be changed, whatever policy comes later.
    changed = wall.changed or (wall.floor if wall.seen else "")
    for command, clause in _CHANGES.items():
        name = f"tenant_{command.lower()}"
        statements.append(f"DROP POLICY IF EXISTS {name} ON {table}")
        if changed:
            statements.append(
                f"CREATE POLICY {name} ON {table} AS RESTRICTIVE FOR {command} {clause} ({changed})"
            )
    return "; ".join(statements)


_CHANGES: Final[Mapping[str, str]] = {"INSERT": "WITH CHECK", "UPDATE": "USING", "DELETE": "USING"}
"""By command the clause of its policy; UPDATE checks new rows by it, too."""
