"""Route guests' addresses below /api/v1/: a public assistant, a guest's rows, and claiming them."""

from django.urls import include, path

from public_api.guests import claim_views, file_views, views

_OF_ASSISTANT = [
    path("", views.CardView.as_view(), name="public_assistant"),
    path("token/", views.TokenView.as_view(), name="guest_token"),
    path("chats/", views.GuestChatsView.as_view(), name="guest_chats"),
    path("chats/<uuid:chat_id>/", views.GuestChatView.as_view(), name="guest_chat"),
    path(
        "chats/<uuid:chat_id>/messages/",
        views.GuestMessagesView.as_view(),
        name="guest_messages",
    ),
    path(
        "messages/<uuid:message_id>/regenerate/",
        views.GuestRegenerateView.as_view(),
        name="guest_regenerate",
    ),
    path(
        "messages/<uuid:message_id>/feedback/",
        views.GuestFeedbackView.as_view(),
        name="guest_feedback",
    ),
    path("turns/<uuid:turn_id>/", views.GuestTurnView.as_view(), name="guest_turn"),
    path(
        "turns/<uuid:turn_id>/events/",
        views.GuestTurnEventsView.as_view(),
        name="guest_turn_events",
    ),
    path("turns/<uuid:turn_id>/cancel/", views.GuestCancelView.as_view(), name="guest_cancel"),
    path("files/", file_views.GuestFilesView.as_view(), name="guest_files"),
    path(
        "files/<uuid:file_id>/content/",
        file_views.GuestFileContentView.as_view(),
        name="guest_file_content",
    ),
]

urlpatterns = [
    path("public/assistants/<uuid:assistant_id>/", include(_OF_ASSISTANT)),
    path("me/claim/", claim_views.ClaimView.as_view(), name="claim"),
]
