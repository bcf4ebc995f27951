"""Route the public API's addresses, from the root."""

from django.urls import include, path

from public_api.completions.view import CompletionsView
from public_api.embeddings.view import EmbeddingsView
from public_api.mcp.metadata import describe_resource
from public_api.mcp.view import McpView
from public_api.openai.models_view import OpenAIModelsView, OpenAIModelView
from public_api.responses.views import (
    CancelResponseView,
    InputItemsView,
    ResponsesView,
    ResponseView,
)
from public_api.views import ChatProxyView

app_name = "public_api"

urlpatterns = [
    path("mcp", McpView.as_view(), name="mcp"),
    path(".well-known/oauth-protected-resource", describe_resource, name="resource"),
    path(".well-known/oauth-protected-resource/mcp", describe_resource, name="mcp-resource"),
    path("chat", ChatProxyView.as_view(), name="chat"),
    path("api/v1/", include("public_api.guests.urls")),
    path("api/v1/", include("public_api.webhooks.urls")),
    path("v1/models", OpenAIModelsView.as_view(), name="models"),
    path("v1/models/<path:model_name>", OpenAIModelView.as_view(), name="model"),
    path("v1/chat/completions", CompletionsView.as_view(), name="completions"),
    path("v1/responses", ResponsesView.as_view(), name="responses"),
    path("v1/responses/<str:response_id>", ResponseView.as_view(), name="response"),
    path("v1/responses/<str:response_id>/cancel", CancelResponseView.as_view()),
    path("v1/responses/<str:response_id>/input_items", InputItemsView.as_view()),
    path("v1/embeddings", EmbeddingsView.as_view(), name="embeddings"),
]
