"""Route addresses to apps."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerSplitView

from amber.web import health
from amber.web.branding import branding_urls
from amber.web.docs_pages import show_docs
from amber.web.openapi_view import SchemaView
from amber.web.page import page_urls
from tools.api.connect_views import ConnectedView

handler400 = "amber.lib.rest.api.handler400"
handler403 = "amber.lib.rest.api.handler403"
handler404 = "amber.web.page.handler404"
handler500 = "amber.lib.rest.api.handler500"

admin.autodiscover()

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    *branding_urls(),
    path("", include("accounts.auth_pages.urls")),
    path("api/v1/", include("chats.urls")),  # first of these: what is asked for most
    path("api/v1/", include("accounts.urls")),
    path("api/v1/", include("providers.urls")),
    path("api/v1/", include("memory.urls")),
    path("api/v1/", include("libraries.urls")),
    path("api/v1/", include("tools.urls")),
    path("api/v1/", include("assistants.urls")),
    path("api/v1/", include("operations.urls")),
    path("", include("public_api.urls")),
    path("tools/connected", ConnectedView.as_view(), name="tool-connected"),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("docs", RedirectView.as_view(pattern_name="docs-site", permanent=True)),
    path("docs/", show_docs, name="docs-site"),
    path("docs/<path:path>", show_docs, name="docs-page"),
    *page_urls(),  # last: what no page of the server's own has
]
