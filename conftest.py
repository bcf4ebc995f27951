"""What every test may use, in the order it is needed: services, Django, people, tools."""

pytest_plugins = [
    "tests.services",
    "tests.setup_django",
    "tests.empty_tables",
    "tests.personas",
    "tests.own_tools",
    "tests.schedule",
]
