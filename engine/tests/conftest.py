from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]
