"""Addresses of files, below /api/v1/."""

from django.urls import path

from libraries import file_views

app_name = "libraries"

urlpatterns = [
    path("files/", file_views.FilesView.as_view(), name="files"),
    path("files/<uuid:file_id>/", file_views.FileView.as_view(), name="file"),
    path(
        "files/<uuid:file_id>/content/", file_views.FileContentView.as_view(), name="file-content"
    ),
]
