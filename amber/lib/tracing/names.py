"""Name all spans of Amber's traces and their attributes: OpenTelemetry's conventions, and Amber's own.

    https://opentelemetry.io/docs/specs/semconv/http/http-spans/
    https://github.com/open-telemetry/semantic-conventions-genai (gen_ai.*; still in development)

No other module writes one of these names; docs/tracing.md lists them (tested). Names of spans hold no ids
and nothing that a person wrote, so that a collector can group by them.
"""

from typing import Final
from urllib.parse import urlsplit

# -- Spans -----------------------------------------------------------------------------------------
REQUEST: Final = "{method} {route}"
AUTHENTICATE: Final = "authenticate"
STORE_QUESTION: Final = "store question"
SEND: Final = "send {queue}"
PROCESS: Final = "process {task}"
INVOKE_AGENT: Final = "invoke_agent"
CLAIM: Final = "claim turn"
PREPARE: Final = "prepare request"
GATHER: Final = "gather context"
COMPOSE: Final = "compose request"
RETRIEVAL: Final = "retrieval"
SEARCH_MEMORY: Final = "search_memory"
RECALL: Final = "recall conversation"
RERANK: Final = "rerank"
CHAT: Final = "chat {model}"
EMBEDDINGS: Final = "embeddings {model}"
EXECUTE_TOOL: Final = "execute_tool {tool}"
STORE_REPLY: Final = "store reply"
INDEX: Final = "index documents"
INDEX_STAGE: Final = "index {stage}"
DELIVER_WEBHOOK: Final = "deliver webhook"

# -- Attributes: HTTP and messages -----------------------------------------------------------------
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
URL_SCHEME: Final = "url.scheme"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
MESSAGING_SYSTEM: Final = "messaging.system"
MESSAGING_DESTINATION: Final = "messaging.destination.name"
MESSAGING_OPERATION: Final = "messaging.operation.type"

# -- Attributes: generative AI ---------------------------------------------------------------------
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_SEED: Final = "gen_ai.request.seed"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
EMBEDDING_DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"

# -- Attributes: content, which only an organization that allows it has -----------------------------
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"

# -- Attributes: Amber's own -----------------------------------------------------------------------
ORGANIZATION_ID: Final = "amber.organization.id"
TURN_ID: Final = "amber.turn.id"
TURN_STATUS: Final = "amber.turn.status"
ATTEMPT: Final = "amber.turn.attempt"
STEPS: Final = "amber.turn.steps"
QUEUED_SECONDS: Final = "amber.turn.queued_seconds"
PASSAGES: Final = "amber.retrieval.passages"
TEXTS: Final = "amber.texts"
DOCUMENTS: Final = "amber.documents"

_PROVIDERS: Final = {
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "openai.com": "openai",
    "anthropic.com": "anthropic",
    "amazonaws.com": "aws.bedrock",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "cohere.com": "cohere",
    "cohere.ai": "cohere",
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "moonshot.cn": "moonshot_ai",
    "perplexity.ai": "perplexity",
    "x.ai": "x_ai",
}
"""The conventions' names of providers, by the end of their host."""


def provider_name(base_url: str) -> str:
    """Return the conventions' name of a provider; of one that they do not know its host."""
    host = urlsplit(base_url).hostname or "offline"
    known = (name for end, name in _PROVIDERS.items() if f".{host}".endswith(f".{end}"))
    return next(known, host)
