from tests.fixtures_provider import fake_provider

__all__ = ["fake_provider"]
