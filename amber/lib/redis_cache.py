"""Let Django's cache use the connections to Redis that all threads of a process share."""

from typing import Any

import redis
from django.core.cache.backends.redis import RedisCache as DjangoRedisCache
from django.core.cache.backends.redis import RedisCacheClient

from amber.lib import redis as amber_redis


class _SharedClient(RedisCacheClient):
    def get_client(self, key: Any = None, *, write: bool = False) -> redis.Redis:
        return amber_redis.client()


class RedisCache(DjangoRedisCache):
    """Django's cache in the installation's Redis, wherever `settings.REDIS_URL` says that is."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _SharedClient
