"""List the addresses of chats, messages and turns, below /api/v1/."""

from django.urls import path

from chats.api import turn_views, views
from chats.api.ask_views import AskView
from chats.api.feedback_views import FeedbackTotalsView, FeedbackView, MessageFeedbackView
from chats.api.source_views import MemorySourcesView
from chats.importing.views import ChatImportView
from chats.streaming.changes_view import ChangesView
from chats.streaming.stream_view import TurnEventsView

app_name = "chats"

urlpatterns = [
    path("chats/", views.ChatsView.as_view(), name="chats"),
    path("chats/import/", ChatImportView.as_view(), name="import"),
    path("chats/search/", views.MessageSearchView.as_view(), name="search"),
    path("chats/<uuid:chat_id>/", views.ChatView.as_view(), name="chat"),
    path("chats/<uuid:chat_id>/messages/", views.MessagesView.as_view(), name="messages"),
    path("chats/<uuid:chat_id>/branch/", views.BranchView.as_view(), name="branch"),
    path("chats/<uuid:chat_id>/export/", views.ChatExportView.as_view(), name="export"),
    path("messages/<uuid:message_id>/", views.MessageView.as_view(), name="message"),
    path(
        "messages/<uuid:message_id>/regenerate/",
        views.RegenerateView.as_view(),
        name="regenerate",
    ),
    path(
        "messages/<uuid:message_id>/feedback/",
        MessageFeedbackView.as_view(),
        name="message-feedback",
    ),
    path("feedback/", FeedbackView.as_view(), name="feedback"),
    path("feedback/totals/", FeedbackTotalsView.as_view(), name="feedback-totals"),
    path("events/", ChangesView.as_view(), name="changes"),
    path("turns/<uuid:turn_id>/", turn_views.TurnView.as_view(), name="turn"),
    path("turns/<uuid:turn_id>/events/", TurnEventsView.as_view(), name="turn_events"),
    path("turns/<uuid:turn_id>/cancel/", turn_views.TurnCancelView.as_view(), name="cancel"),
    path("turns/<uuid:turn_id>/approve/", turn_views.ApproveView.as_view(), name="approve"),
    path("turns/<uuid:turn_id>/manifest/", turn_views.ManifestView.as_view(), name="manifest"),
    path("libraries/<uuid:library_id>/ask/", AskView.as_view(), name="ask"),
    path("memories/<uuid:memory_id>/sources/", MemorySourcesView.as_view(), name="memory-sources"),
    path("assistants/<uuid:assistant_id>/try/", turn_views.TryView.as_view(), name="try"),
]
