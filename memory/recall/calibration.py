"""Calibrate embedding models: embed the fixed texts once, and keep what they show for all processes.

What was measured lies in Redis and, for a while, in each process; when it is lost it is measured again, for a
thousand tokens. A question never waits for it: where nothing is known, `memory.recall.relevance` has a rule
without. Whoever embeds memories calibrates (`memory.recall.embedding`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import orjson
import redis
import structlog

from amber.lib import redis as amber_redis
from engine.provider.model import ProviderError
from memory.recall.floors import SCRIPTS, NearnessScale, measure_nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

logger = structlog.get_logger(__name__)

Scales = Mapping[str, NearnessScale]

KEPT_SECONDS: Final = 30 * 86_400
"""Models behind one name are seldom exchanged; then this is measured anew."""

KNOWN_SECONDS: Final = 600.0
UNKNOWN_SECONDS: Final = 5.0
"""How long a process believes what it read from Redis, or that there is nothing."""

RETRY_SECONDS: Final = 60.0
"""After an attempt a process waits so long before it tries the same model again."""

_read: dict[UUID, tuple[float, Scales]] = {}
_tried: dict[UUID, float] = {}


def scales_of(model_id: UUID) -> Scales:
    """Return the scale for each script, or nothing yet. At most one command to Redis, mostly none."""
    until, scales = _read.get(model_id, (0.0, {}))
    if time.monotonic() < until:
        return scales
    try:
        stored = amber_redis.client().get(_key(model_id))
    except redis.RedisError as error:
        logger.warning("calibration_not_read", reason=type(error).__name__)
        stored = None
    return _believe(model_id, _decode(stored) if isinstance(stored, bytes) else {})


def calibrate(model_id: UUID, embed: "Callable[[Sequence[str]], Vectors]") -> None:
    """Measure the model's scales, unless they are known. One call of `embed`; its failure is logged.

    Two processes that measure at once find the same.
    """
    now = time.monotonic()
    if scales_of(model_id) or now < _tried.get(model_id, 0.0):
        return
    _tried[model_id] = now + RETRY_SECONDS
    texts = [text for each in SCRIPTS.values() for text in each.all]
    try:
        vectors = embed(texts)
    except ProviderError as error:
        logger.warning("embedder_not_calibrated", reason=error.code)
        return
    scales = {}
    for script, each in SCRIPTS.items():
        scales[script] = measure_nearness(each, vectors[: len(each.all)])
        vectors = vectors[len(each.all) :]
    _believe(model_id, scales)
    try:
        amber_redis.client().set(_key(model_id), _encode(scales), ex=KEPT_SECONDS)
    except redis.RedisError as error:
        logger.warning("calibration_not_kept", reason=type(error).__name__)


def _believe(model_id: UUID, scales: Scales) -> Scales:
    kept_seconds = KNOWN_SECONDS if scales else UNKNOWN_SECONDS
    _read[model_id] = time.monotonic() + kept_seconds, scales
    return scales


def _key(model_id: UUID) -> bytes:
    """Embedding models are the platform's: no organization owns what they show."""
    return amber_redis.key("nearness", None, model_id)


def _encode(scales: Scales) -> bytes:
    return orjson.dumps(dict(scales))


def _decode(stored: bytes) -> Scales:
    return {script: NearnessScale(**fields) for script, fields in orjson.loads(stored).items()}
