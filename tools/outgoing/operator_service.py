"""Requests to the services an operator names by URL: search engines, speech.

They may stand in a private network, so the guard is opened for the host and port of that URL, and
for nothing else: where such a service sends us on (a redirect, an address in its answer), the
installation's rules hold. What goes wrong is told to the model in words it can act on; the reason
goes to the log, for the operator.
"""

import structlog

from amber.lib.egress import FetchError, FetchLimits, Response
from amber.lib.egress.operator_hosts import policy_trusting
from tools.outgoing.requests import ServiceError, ServiceRequest, send
from tools.protocol import ToolContext, ToolError

logger = structlog.get_logger(__name__)


async def ask(
    request: ServiceRequest,
    *,
    what: str,
    trusting: str,
    context: ToolContext,
    idempotent: bool,
    limits: FetchLimits,
) -> Response:
    """A good answer. `what` is the service's name for people, `trusting` its configured URL.

    Raises ToolError.
    """
    try:
        answer = await send(
            request,
            context=context,
            idempotent=idempotent,
            limits=limits,
            policy=policy_trusting(trusting),
        )
    except ServiceError as error:
        raise unavailable(what, reason=error.detail) from None
    if answer.status == 429:
        logger.warning("operator_service_failed", service=what, reason="429")
        raise ToolError(f"{what} takes no more requests now. Try later, or go on without it.")
    if not answer.is_success:
        raise unavailable(what, reason=f"status {answer.status}")
    return answer


def json_object(answer: Response, *, what: str) -> dict[str, object]:
    """Raises ToolError for what is no JSON object."""
    try:
        value = answer.json()
    except FetchError:
        raise unavailable(what, reason="the answer is no JSON") from None
    if not isinstance(value, dict):
        raise unavailable(what, reason="the answer is no JSON object")
    return value


def unavailable(what: str, *, reason: str) -> ToolError:
    """Logs the reason and makes the error that does not tell it."""
    logger.warning("operator_service_failed", service=what, reason=reason)
    return ToolError(f"{what} is not available at the moment. Go on without it.")
