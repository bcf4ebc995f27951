"""Route the addresses of files, libraries and documents below /api/v1/."""

from django.urls import path

from libraries.api import document_views, file_views, repository_views, search_views, views

app_name = "libraries"

urlpatterns = [
    path("files/", file_views.FilesView.as_view(), name="files"),
    path("files/<uuid:file_id>/", file_views.FileView.as_view(), name="file"),
    path(
        "files/<uuid:file_id>/content/", file_views.FileContentView.as_view(), name="file-content"
    ),
    path("libraries/", views.LibrariesView.as_view(), name="libraries"),
    path("libraries/<uuid:library_id>/", views.LibraryView.as_view(), name="library"),
    path(
        "libraries/<uuid:library_id>/ingestion/",
        views.IngestionView.as_view(),
        name="library-ingestion",
    ),
    path(
        "libraries/<uuid:library_id>/grants/",
        views.LibraryGrantsView.as_view(),
        name="library-grants",
    ),
    path(
        "libraries/<uuid:library_id>/grants/<uuid:group_id>/",
        views.LibraryGrantView.as_view(),
        name="library-grant",
    ),
    path("libraries/search/", search_views.LibrariesSearchView.as_view(), name="libraries-search"),
    path(
        "libraries/<uuid:library_id>/search/",
        search_views.LibrarySearchView.as_view(),
        name="library-search",
    ),
    path("libraries/<uuid:library_id>/reindex/", views.ReindexView.as_view(), name="reindex"),
    path(
        "libraries/<uuid:library_id>/import/",
        repository_views.RepositoriesView.as_view(),
        name="library-import",
    ),
    path("imports/<uuid:import_id>/", repository_views.RepositoryView.as_view(), name="import"),
    path(
        "imports/<uuid:import_id>/cancel/",
        repository_views.CancelImportView.as_view(),
        name="import-cancel",
    ),
    path(
        "libraries/<uuid:library_id>/documents/",
        document_views.DocumentsView.as_view(),
        name="library-documents",
    ),
    path("documents/", document_views.DefaultDocumentsView.as_view(), name="documents"),
    path("documents/<uuid:document_id>/", document_views.DocumentView.as_view(), name="document"),
    path(
        "documents/<uuid:document_id>/text/",
        document_views.DocumentTextView.as_view(),
        name="document-text",
    ),
    path(
        "documents/<uuid:document_id>/chunks/",
        document_views.ChunksView.as_view(),
        name="document-chunks",
    ),
    path(
        "documents/<uuid:document_id>/retry/",
        document_views.RetryView.as_view(),
        name="document-retry",
    ),
    path(
        "documents/<uuid:document_id>/refresh/",
        document_views.DocumentRefreshView.as_view(),
        name="document-refresh",
    ),
    path(
        "documents/<uuid:document_id>/cancel/",
        document_views.DocumentCancelView.as_view(),
        name="document-cancel",
    ),
]
