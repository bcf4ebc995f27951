"""Route REST of webhooks, below /api/v1/."""

from django.urls import path

from public_api.webhooks import views

urlpatterns = [
    path("webhooks/", views.WebhooksView.as_view(), name="webhooks"),
    path("webhooks/<uuid:webhook_id>/", views.WebhookView.as_view(), name="webhook"),
    path("webhooks/<uuid:webhook_id>/rotate/", views.RotateSecretView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries/", views.DeliveriesView.as_view()),
    path(
        "webhooks/<uuid:webhook_id>/deliveries/<uuid:delivery_id>/redeliver/",
        views.RedeliverView.as_view(),
    ),
]
