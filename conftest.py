"""Load the fixtures of every test in the order they are needed: services, Django, people, tools."""

pytest_plugins = [
    "tests.services",
    "tests.setup_django",
    "tests.empty_tables",
    "tests.personas",
    "tests.own_tools",
    "tests.schedule",
]
