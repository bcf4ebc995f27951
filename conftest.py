"""What every test may use, in the order it is needed: services, Django, people."""

pytest_plugins = ["tests.services", "tests.setup_django", "tests.personas"]
