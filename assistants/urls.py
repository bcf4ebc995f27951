"""Route the REST addresses of assistants, below /api/v1/."""

from django.urls import path

from assistants.api import views

urlpatterns = [
    path("assistants/", views.AssistantsView.as_view(), name="assistants"),
    path("assistants/<uuid:assistant_id>/", views.AssistantView.as_view(), name="assistant"),
    path(
        "assistants/<uuid:assistant_id>/grants/",
        views.AssistantGrantsView.as_view(),
        name="assistant-grants",
    ),
    path(
        "assistants/<uuid:assistant_id>/grants/<uuid:group_id>/",
        views.AssistantGrantView.as_view(),
        name="assistant-grant",
    ),
    path(
        "assistants/<uuid:assistant_id>/dismiss-guests/",
        views.DismissGuestsView.as_view(),
        name="dismiss-guests",
    ),
    path(
        "assistants/<uuid:assistant_id>/tools/",
        views.BindingsView.as_view(),
        name="assistant-tools",
    ),
    path(
        "assistants/<uuid:assistant_id>/tools/<uuid:tool_id>/",
        views.BindingView.as_view(),
        name="assistant-tool",
    ),
    path(
        "assistants/<uuid:assistant_id>/scene-prompts/",
        views.ScenePromptsView.as_view(),
        name="scene-prompts",
    ),
    path(
        "assistants/<uuid:assistant_id>/scene-prompts/usual/",
        views.UsualScenesView.as_view(),
        name="usual-scenes",
    ),
    path(
        "assistants/<uuid:assistant_id>/scene-prompts/<uuid:scene_id>/",
        views.ScenePromptView.as_view(),
        name="scene-prompt",
    ),
]
