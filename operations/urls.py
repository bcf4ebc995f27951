"""List the addresses of a person's own data, below /api/v1/."""

from django.urls import path

from operations.api.person_views import EraseView, PersonExportView

app_name = "operations"

urlpatterns = [
    path("me/export/", PersonExportView.as_view(), name="person-export"),
    path("me/erase/", EraseView.as_view(), name="person-erase"),
]
