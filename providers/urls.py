"""REST of providers, below /api/v1/."""

from django.urls import path

from providers import views

urlpatterns = [
    path("models/", views.ModelsView.as_view(), name="models"),
    path("usage/", views.UsageView.as_view(), name="usage"),
]
