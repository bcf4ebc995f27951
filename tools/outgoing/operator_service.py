"""Send requests to services that an operator names by URL, such as search engines and speech.

They may be in a private network, so the guard lets requests through to the host and port of that
URL and to nothing else: where such a service points elsewhere (by a redirect or an address in its
answer), the installation's rules hold. The model is told of a failure in words it can act on; the
reason goes to the log, for the operator.
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
    limits: FetchLimits,
) -> Response:
    """Send a request, which is repeated while the service is overloaded, and return a successful answer. Raises
    ToolError.

    `what` is the service's name for people, `trusting` its configured URL.
    """
    try:
        answer = await send(
            request,
            context=context,
            idempotent=True,
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
    """Return the answer's JSON object. Raises ToolError if it is none."""
    try:
        value = answer.json()
    except FetchError:
        raise unavailable(what, reason="the answer is no JSON") from None
    if not isinstance(value, dict):
        raise unavailable(what, reason="the answer is no JSON object")
    return value


def unavailable(what: str, *, reason: str) -> ToolError:
    """Log the reason and return an error that does not reveal it."""
    logger.warning("operator_service_failed", service=what, reason=reason)
    return ToolError(f"{what} is not available at the moment. Go on without it.")
