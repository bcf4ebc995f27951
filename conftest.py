"""Load the fixtures of every test in the order they are needed: services, Django, people, tools."""

pytest_plugins = [
    "tests.services",
    "tests.fixtures.garbage",
    "tests.fixtures.setup_django",
    "tests.fixtures.databases",
    "tests.fixtures.empty_tables",
    "tests.fixtures.personas",
    "tests.fixtures.own_tools",
    "tests.fixtures.worker_loop",
    "tests.fixtures.schedule",
]
