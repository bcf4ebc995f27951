"""Write the body of a request to a provider."""

import json
from collections.abc import Mapping
from typing import Any

import orjson


def as_json(fields: Mapping[str, Any]) -> bytes:
    """Return a request's body. Halves of characters, which JSON may not hold, become `?`."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a lone surrogate, or a type only the standard library knows
        return json.dumps(fields, ensure_ascii=False, default=str).encode("utf-8", "replace")
