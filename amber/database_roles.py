"""Make the roles that Amber's processes log in as, and give each what it may do.

    owner     owns the tables. Nobody logs in as it where a superuser migrates
    app       web and workers log in as it (DATABASE_URL); it owns nothing, every policy binds it
    system    claims, sweeps, sign-in and the admin do (AMBER_SYSTEM_DATABASE_URL); no policy binds it
    search    owns the functions that search by words, or tell what groups were granted, and reads
              what these look at

`arrange_installation` runs after the migrations, and after a restore, as whoever applies them
(AMBER_OWNER_DATABASE_URL). On a server where that login may not make roles an administrator runs
what `role_sql` returns.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import ProgrammingError, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

OWNER: Final = "amber_owner"
SEARCH: Final = "amber_search"
APP: Final = "amber_app"
SYSTEM: Final = "amber_system"

WITHHELD: Final[Mapping[str, str]] = {
    "django_migrations": "INSERT, UPDATE, DELETE",
    "accounts_auditevent": "UPDATE, DELETE",
    "accounts_auditchain": "DELETE",
}
"""What the app may not do with a table, beside what policies forbid."""
SEARCHED: Final = (
    "libraries_documentchunk",
    "chats_chatmessage",
    "chats_chat",
    "chats_messageblock",
    "memory_memory",
    "accounts_membership",
    "accounts_groupmember",
    "assistants_assistantgrant",
    "libraries_librarygrant",
    "tools_toolgrant",
)
"""Tables that the functions of `search` read."""

# A partition must not be readable by itself, any other table must. `e`: an extension's own.
_IN_ORDER_SQL: Final = """
SELECT NOT EXISTS (
    SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND (has_table_privilege(%(app)s, oid, 'SELECT') = relispartition
        OR relowner <> to_regrole(%(owner)s)::oid)
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
) AND NOT EXISTS (
    SELECT FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef
    AND proowner <> to_regrole(%(search)s)::oid
)
"""
_RIGHTS_SQL: Final = """
SELECT mine.rolsuper OR mine.rolbypassrls,
    NOT (app.rolsuper OR app.rolbypassrls OR app.rolcreaterole)
    AND NOT EXISTS (SELECT FROM pg_auth_members WHERE member = app.oid)
FROM pg_roles AS mine JOIN pg_roles AS app ON app.rolname = %s WHERE mine.rolname = current_user
"""
_OBJECTS_SQL: Final = """
SELECT format('ALTER %%s %%I.%%I OWNER TO %%I', kind, 'public', name, %(owner)s) FROM (
    SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relname, oid
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
    AND relowner <> to_regrole(%(owner)s)::oid
    AND (relispartition OR NOT EXISTS (  -- a sequence of a column goes with its table
        SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype IN ('a', 'i', 'e')
        AND refobjid <> objid  -- as a table in partitions has it, for its key
    ))
) found (kind, name, oid)
UNION ALL
SELECT format('ALTER FUNCTION %%s OWNER TO %%I', oid::regprocedure, CASE WHEN prosecdef THEN %(search)s
    ELSE %(owner)s END)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')
"""


ONE_ROLE: Final = (
    "WARNING: Amber's processes log in as the role that owns the tables, so Postgres does not keep "
    "tenants apart; only Amber's own code does. Set AMBER_OWNER_DATABASE_URL to this login, let "
    f"DATABASE_URL log in as {APP} and AMBER_SYSTEM_DATABASE_URL as {SYSTEM}, and run bootstrap "
    "again (docs/security-model.md)."
)

# A partition is reached through its table, whose rights and policies count.
_PARTITIONS_SQL: Final = """
SELECT format('REVOKE ALL ON %%I FROM %%I', relname, %(app)s::text)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relispartition
"""


class RolesMissing(Exception):
    """The roles are not as they must be, and this login cannot make them so; the text says who can,
    and by which statements."""


def arrange_installation(connection: Any) -> str:
    """Make the roles that the settings name, and give each what it may do; return a warning, or "".

    Doing it twice does no harm. Raises RolesMissing.
    """
    logins = {role: each["USER"] for role, each in settings.AMBER_DATABASES.items()}
    if logins["app"] == logins["owner"]:
        with connection.cursor() as cursor:
            _stop_forcing(cursor)
        return ONE_ROLE
    if (logins["app"], logins["system"]) != (APP, SYSTEM):
        raise RolesMissing(
            f"DATABASE_URL must log in as {APP} and AMBER_SYSTEM_DATABASE_URL as {SYSTEM}; "
            "bootstrap makes both."
        )
    passwords = {
        APP: settings.AMBER_DATABASES["app"]["PASSWORD"],
        SYSTEM: settings.AMBER_DATABASES["system"]["PASSWORD"],
    }
    _prepare(connection, passwords)
    return ""


def _prepare(connection: Any, passwords: Mapping[str, str]) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            make_roles(cursor, passwords)
            arrange(cursor)
            _check_rights(cursor, login=connection.settings_dict["USER"])
    except ProgrammingError as error:
        if not isinstance(error.__cause__, InsufficientPrivilege):
            raise
        hidden = {role: "..." for role, password in passwords.items() if password}
        statements = "\n".join(f"    {each.as_string()};" for each in role_sql(hidden))
        raise RolesMissing(
            f"This login may not arrange the database's roles ({error.__cause__.diag.message_primary}"
            "). Let an administrator of the server run this, with passwords of your own, make the "
            f"login a member of {OWNER} and {SEARCH}, and run bootstrap again:\n{statements}"
        ) from None


def _check_rights(cursor: Any, *, login: str) -> None:
    """Raise RolesMissing if a policy binds whoever migrates, or none binds the app."""
    cursor.execute(_RIGHTS_SQL, [APP])
    passes_policies, app_is_bound = cursor.fetchone()
    if not passes_policies:
        raise RolesMissing(
            "This login migrates the rows of all tenants, and policies bind it. Let an "
            f"administrator run: ALTER ROLE {login} BYPASSRLS;"
        )
    if not app_is_bound:
        raise RolesMissing(
            f"No policy binds {APP}, so Postgres would not keep tenants apart. Let an administrator "
            f"take it out of every other role, and run: ALTER ROLE {APP} NOSUPERUSER NOBYPASSRLS "
            "NOCREATEROLE;"
        )


def _stop_forcing(cursor: Any) -> None:
    """Let the tables' owner pass the policies: it is the only role there is."""
    cursor.execute(
        "SELECT format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', relname) FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relforcerowsecurity"
        " AND pg_has_role(current_user, relowner, 'MEMBER')"
    )
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)


def make_roles(cursor: Any, passwords: Mapping[str, str]) -> None:
    """Create the roles that are missing, and give app and system their passwords.

    `passwords` are by role, empty for none. Raises psycopg's InsufficientPrivilege.
    """
    cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [list(_ROLES)])
    there = {name for (name,) in cursor.fetchall()}
    for statement in role_sql(passwords, without=there):
        cursor.execute(statement)


_ROLES: Final[Mapping[str, str]] = {
    OWNER: "NOLOGIN BYPASSRLS",
    SEARCH: "NOLOGIN BYPASSRLS",
    APP: "LOGIN NOBYPASSRLS NOINHERIT",
    SYSTEM: "LOGIN BYPASSRLS",
}


def role_sql(passwords: Mapping[str, str], *, without: set[str] = frozenset()) -> list[Any]:  # type: ignore[assignment]
    """Return the statements that make the roles."""
    made: list[Any] = []
    for role, attributes in _ROLES.items():
        if role in without:
            continue
        made.append(sql.SQL("CREATE ROLE {} " + attributes).format(sql.Identifier(role)))
        if passwords.get(role):
            change = sql.SQL("ALTER ROLE {} PASSWORD {}")
            made.append(change.format(sql.Identifier(role), sql.Literal(passwords[role])))
        if role == APP:
            # Empty is no organization: without a tenant a statement about its rows fails.
            made += [
                sql.SQL(f"ALTER ROLE {{}} SET amber.\"{name}\" = ''").format(sql.Identifier(APP))
                for name in ("organization", "user")
            ]
        if role == SYSTEM:
            # It builds the indexes of vectors, which only a table's owner may.
            made.append(sql.SQL(f"GRANT {OWNER} TO {SYSTEM}"))
    return made


def is_in_order(cursor: Any) -> bool:
    """Return whether everything has its owner, and the app its rights. One query."""
    cursor.execute(_IN_ORDER_SQL, {"owner": OWNER, "search": SEARCH, "app": APP})
    return bool(cursor.fetchone()[0])


def arrange(cursor: Any) -> None:
    """Give tables to their owner, and the app what it may do with them. Quick where that is so."""
    if is_in_order(cursor):
        return
    _execute_each(cursor, _OBJECTS_SQL, {"owner": OWNER, "search": SEARCH})
    # CREATE, as Postgres asks it of whoever makes an index, too: `system` does, by this role.
    cursor.execute(
        f"""
        GRANT USAGE ON SCHEMA public TO {APP}, {SYSTEM}, {SEARCH};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {APP};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {APP};
        {"; ".join(f"REVOKE {rights} ON {table} FROM {APP}" for table, rights in WITHHELD.items())};
        GRANT SELECT ON {", ".join(SEARCHED)} TO {SEARCH};
        GRANT CREATE ON SCHEMA public TO {OWNER};
        GRANT {SEARCH} TO {OWNER};
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {APP}, {SYSTEM};
        """
    )
    _execute_each(cursor, _PARTITIONS_SQL, {"app": APP})


def _execute_each(cursor: Any, query: str, values: Mapping[str, str]) -> None:
    cursor.execute(query, values)
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)
