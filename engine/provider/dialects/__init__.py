"""Name the dialects in which providers are offered tools: a module each, and this table.

The rest of Amber knows only messages and tools in the form of `tools`, and whole calls.
"""

from collections.abc import Mapping
from typing import Final

from engine.provider.dialects import anthropic, chatglm3, functions, responses, tools
from engine.provider.dialects.dialect import Dialect

DIALECTS: Final[Mapping[str, Dialect]] = {
    "tools": tools.DIALECT,
    "functions": functions.DIALECT,
    "chatglm3": chatglm3.DIALECT,
    "anthropic": anthropic.DIALECT,
    "responses": responses.DIALECT,
}
"""By the names that models are configured with, of at most 12 characters."""
