"""Route the REST addresses of tools, below /api/v1/."""

from django.urls import path

from tools.api import connect_views, views

urlpatterns = [
    path("tools/", views.ToolsView.as_view(), name="tools"),
    path("tools/<uuid:tool_id>/", views.ToolView.as_view(), name="tool"),
    path("tools/<uuid:tool_id>/grants/", views.ToolGrantsView.as_view(), name="tool-grants"),
    path(
        "tools/<uuid:tool_id>/grants/<uuid:group_id>/",
        views.ToolGrantView.as_view(),
        name="tool-grant",
    ),
    path("tools/<uuid:tool_id>/refresh/", views.ToolRefreshView.as_view(), name="tool-refresh"),
    path("tools/<uuid:tool_id>/connect/", connect_views.ConnectView.as_view(), name="tool-connect"),
    path("tools/<uuid:tool_id>/call/", views.CallView.as_view(), name="tool-call"),
    path("tools/<uuid:tool_id>/calls/", views.CallsView.as_view(), name="tool-calls"),
]
