"""Route the REST addresses of providers, below /api/v1/."""

from django.urls import path

from providers.api import budget_views, views

urlpatterns = [
    path("models/", views.ModelsView.as_view(), name="models"),
    path("usage/", views.UsageView.as_view(), name="usage"),
    path("usage/export/", views.UsageExportView.as_view(), name="usage-export"),
    path("budgets/", budget_views.BudgetsView.as_view(), name="budgets"),
    path("budgets/<uuid:budget_id>/", budget_views.BudgetView.as_view(), name="budget"),
]
