"""Load the fixtures of every test in the order they are needed: services, Django, people, tools."""

pytest_plugins = [
    "tests.services",
    "tests.garbage",
    "tests.setup_django",
    "tests.databases",
    "tests.empty_tables",
    "tests.personas",
    "tests.own_tools",
    "tests.worker_loop",
    "tests.schedule",
]
