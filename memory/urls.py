"""Route the addresses of memories below /api/v1/."""

from django.urls import path

from memory.api import views

app_name = "memory"

urlpatterns = [
    path("memories/", views.MemoriesView.as_view(), name="memories"),
    path("memories/search/", views.MemorySearchView.as_view(), name="memories-search"),
    path("memories/export/", views.MemoryExportView.as_view(), name="memories-export"),
    path("memories/<uuid:memory_id>/", views.MemoryView.as_view(), name="memory"),
]
