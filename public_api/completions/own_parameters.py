"""Tell apart the fields of a request that Amber does not know: a model's own parameters, and others.

Those that an operator allows for the model are passed on; the names of the rest are told in a header,
since OpenAI's clients send fields that no other server has, and a refusal would help nobody.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from amber.lib.errors import Invalid
from engine.provider.parameters import RESERVED
from engine.provider_fields import MAX_FIELDS_BYTES, is_too_long, storable
from providers.registry import allowed_parameters
from public_api.completions.request import CompletionRequest
from public_api.completions.serializers import CompletionInput
from public_api.openai.answerers import Answerer

IGNORED_HEADER: Final = "X-Amber-Ignored-Parameters"
MAX_NAMED: Final = 20

_KNOWN: Final = frozenset(CompletionInput().fields) | RESERVED
_NAME = re.compile(r"\A[A-Za-z0-9_.-]{1,64}\Z")


def with_own_parameters(
    asked: CompletionRequest, sent: Mapping[str, Any], answerer: Answerer
) -> tuple[CompletionRequest, dict[str, str]]:
    """Return the request with the model's own parameters, and the header that names what is ignored.

    At most one query, and none where all fields are known. Raises Invalid.
    """
    unknown = {k: v for k, v in sent.items() if k not in _KNOWN and v is not None}
    if not unknown:
        return asked, {}
    alias = answerer.assistant.model if answerer.assistant else answerer.name
    allowed = allowed_parameters(alias)
    own = {k: storable(v) for k, v in unknown.items() if k in allowed}
    if is_too_long(own):
        raise Invalid(f"The model's parameters have more than {MAX_FIELDS_BYTES:,} bytes.")
    options = replace(asked.options, extra={**asked.options.extra, **own})
    ignored = sorted(k for k in unknown if k not in own and _NAME.match(k))[:MAX_NAMED]
    return replace(asked, options=options), {IGNORED_HEADER: ", ".join(ignored)} if ignored else {}
