"""Define Django's settings. docs/settings.md explains every AMBER_* value, which a test checks."""

from pathlib import Path
from typing import Any

import django_stubs_ext
import structlog
from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from amber.lib import environment as env
from amber.lib.mail.log_redaction import hide_link_keys
from amber.lib.palette import palette
from amber.lib.redis_address import broker_options, broker_tls, broker_url
from amber.lib.storage import address as files_address
from amber.lib.tracing import spans
from amber.web.openapi_texts import INTRODUCTION

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
AMBER_VAR_DIR = env.folder("AMBER_VAR_DIR", BASE_DIR / "var")
AMBER_VERSION = "0.1.0"

# -- Secrets and addresses ---------------------------------------------------------------------
SECRET_KEY = env.text("AMBER_SECRET_KEY")
AMBER_SECRET_KEYS = env.secret_keys("AMBER_SECRET_KEYS")
DEBUG = env.flag("AMBER_DEBUG", False)
ALLOWED_HOSTS = env.hosts("AMBER_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
AMBER_PUBLIC_URL = env.address("AMBER_PUBLIC_URL").rstrip("/")
CSRF_TRUSTED_ORIGINS = CORS_ALLOWED_ORIGINS = env.origins("AMBER_TRUSTED_ORIGINS")
CORS_ALLOW_CREDENTIALS = True
CORS_ALLOW_HEADERS = [
    *("accept", "authorization", "content-type", "idempotency-key", "last-event-id"),
    *("x-csrftoken", "x-request-id", "x-requested-with", "x-amber-chat-id"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"),
    # What OpenAI's own clients send along from a browser.
    *("openai-organization", "openai-project", "openai-beta", "user-agent"),
    *("x-stainless-arch", "x-stainless-lang", "x-stainless-os", "x-stainless-package-version"),
    *("x-stainless-runtime", "x-stainless-runtime-version", "x-stainless-retry-count"),
    *("x-stainless-timeout", "x-stainless-helper-method"),
]
CORS_EXPOSE_HEADERS = [
    *("X-Request-Id", "Retry-After", "Location", "X-Amber-Chat-Id", "WWW-Authenticate"),
    "X-Amber-Ignored-Parameters",
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
]
AMBER_SECURE_COOKIES = env.flag("AMBER_SECURE_COOKIES", AMBER_PUBLIC_URL.startswith("https:"))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = AMBER_SECURE_COOKIES
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
_PAGE_POLICY: dict[str, list[str]] = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "frame-ancestors": [NONE],
    "base-uri": [SELF],
    "form-action": [SELF],
}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": _PAGE_POLICY}
# The admin's components evaluate expressions (Alpine.js), and set styles in place.
ADMIN_CONTENT_SECURITY_POLICY = _PAGE_POLICY | {
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}

# -- Ours: what people see of the installation ---------------------------------------------------
AMBER_NAME = env.line("AMBER_NAME", "Amber", most_chars=40)
AMBER_LOGO = env.logo("AMBER_LOGO")
AMBER_COLOR = env.colour("AMBER_COLOR")
AMBER_PALETTE = palette(AMBER_COLOR or "#a34e06")  # without one, that of web/styles/1-tokens.css
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("zh-hans", "简体中文")]
AMBER_LANGUAGE = env.choice("AMBER_LANGUAGE", "en", tuple(code for code, _ in LANGUAGES))

# -- Limits, with their reasons in docs/settings.md ----------------------------------------------
AMBER_MAX_MESSAGE_CHARS = env.integer("AMBER_MAX_MESSAGE_CHARS", 200_000, least=1)
AMBER_MAX_UPLOAD_BYTES = env.integer("AMBER_MAX_UPLOAD_BYTES", 20_000_000, least=1)
AMBER_MAX_REPOSITORY_BYTES = env.integer("AMBER_MAX_REPOSITORY_BYTES", 100_000_000, least=1)
AMBER_MAX_IMPORT_BYTES = env.integer("AMBER_MAX_IMPORT_BYTES", 20_000_000, least=1)
AMBER_MAX_TOOL_ROUNDS = env.integer("AMBER_MAX_TOOL_ROUNDS", 5)
AMBER_TOOL_TIMEOUT_SECONDS = env.number("AMBER_TOOL_TIMEOUT_SECONDS", 30, least=0.1)
AMBER_TOOL_RESULT_TOKENS = env.integer("AMBER_TOOL_RESULT_TOKENS", 8_000, least=100)
AMBER_CONTEXT_TAIL_TOKENS = env.integer("AMBER_CONTEXT_TAIL_TOKENS", 12_000, least=500)
AMBER_BLOCK_TOKENS = env.integer("AMBER_BLOCK_TOKENS", 800, least=50)
AMBER_RECALL_TOKENS = env.integer("AMBER_RECALL_TOKENS", 3_000)
AMBER_MEMORY_TOKENS = env.integer("AMBER_MEMORY_TOKENS", 600)
AMBER_MEMORY_MODEL = env.text("AMBER_MEMORY_MODEL")
AMBER_PASSAGE_TOKENS = env.integer("AMBER_PASSAGE_TOKENS", 4_000)
AMBER_DIGEST_SECONDS = env.number("AMBER_DIGEST_SECONDS", 10)
AMBER_FILE_TOKENS = env.integer("AMBER_FILE_TOKENS", 24_000, least=200)
AMBER_IMAGE_TOKENS = env.integer("AMBER_IMAGE_TOKENS", 765)
AMBER_IMAGE_MAX_SIDE_PIXELS = env.integer("AMBER_IMAGE_MAX_SIDE_PIXELS", 2_048, least=64)
AMBER_CONNECT_SECONDS = env.number("AMBER_CONNECT_SECONDS", 5, least=0.1)
AMBER_FIRST_TOKEN_SECONDS = env.number("AMBER_FIRST_TOKEN_SECONDS", 60, least=0.1)
AMBER_IDLE_SECONDS = env.number("AMBER_IDLE_SECONDS", 60, least=0.1)
AMBER_TURN_SECONDS = env.number("AMBER_TURN_SECONDS", 300, least=1)
AMBER_MAX_REPLY_CHARS = env.integer("AMBER_MAX_REPLY_CHARS", 1_000_000, least=1_000)
AMBER_PROVIDER_RETRIES = env.integer("AMBER_PROVIDER_RETRIES", 2)
AMBER_EMBEDDING_CONCURRENCY = env.integer("AMBER_EMBEDDING_CONCURRENCY", 4, least=1)
AMBER_RERANK_URL = env.address("AMBER_RERANK_URL")
AMBER_RERANK_MODEL = env.text("AMBER_RERANK_MODEL")
AMBER_RERANK_API_KEY = env.text("AMBER_RERANK_API_KEY")
AMBER_RERANK_TURN_SECONDS = env.number("AMBER_RERANK_TURN_SECONDS", 0)
AMBER_LEASE_SECONDS = env.number("AMBER_LEASE_SECONDS", 20, least=1)
AMBER_SWEEP_SECONDS = env.number("AMBER_SWEEP_SECONDS", 5, least=0.2)
AMBER_MAX_ATTEMPTS = env.integer("AMBER_MAX_ATTEMPTS", 3, least=1)
AMBER_SHUTDOWN_GRACE_SECONDS = env.number("AMBER_SHUTDOWN_GRACE_SECONDS", 20)
AMBER_DRAIN_SECONDS = env.number("AMBER_DRAIN_SECONDS", 0)
AMBER_STREAM_TTL_SECONDS = env.integer("AMBER_STREAM_TTL_SECONDS", 600, least=30)
AMBER_STREAM_MAX_EVENTS = env.integer("AMBER_STREAM_MAX_EVENTS", 20_000, least=100)
AMBER_STREAM_HEARTBEAT_SECONDS = env.number("AMBER_STREAM_HEARTBEAT_SECONDS", 15, least=0.2)
AMBER_STATELESS_KEEP_SECONDS = env.integer("AMBER_STATELESS_KEEP_SECONDS", 3_600)
AMBER_RATE_ORGANIZATION = env.integer("AMBER_RATE_ORGANIZATION", 0)
AMBER_RATE_KEY = env.integer("AMBER_RATE_KEY", 6_000)
AMBER_RATE_USER = env.integer("AMBER_RATE_USER", 240)
AMBER_RATE_GUEST = env.integer("AMBER_RATE_GUEST", 30)
AMBER_RATE_GUEST_TOKEN = env.integer("AMBER_RATE_GUEST_TOKEN", 60)
AMBER_RATE_ADMIN_SIGN_IN = env.integer("AMBER_RATE_ADMIN_SIGN_IN", 10)
AMBER_GUEST_TOKEN_DAYS = env.number("AMBER_GUEST_TOKEN_DAYS", 30, least=0.001)
AMBER_GUEST_CHAT_DAYS = env.number("AMBER_GUEST_CHAT_DAYS", 30, least=0.001)
AMBER_GUEST_MAX_CHATS = env.integer("AMBER_GUEST_MAX_CHATS", 20, least=1)
AMBER_GUEST_MAX_MESSAGE_CHARS = env.integer("AMBER_GUEST_MAX_MESSAGE_CHARS", 8_000, least=1)
AMBER_GUEST_MAX_FILES = env.integer("AMBER_GUEST_MAX_FILES", 20, least=1)
AMBER_GUEST_MAX_FILE_BYTES = env.integer("AMBER_GUEST_MAX_FILE_BYTES", 5_000_000, least=1)
AMBER_IDEMPOTENCY_HOURS = env.integer("AMBER_IDEMPOTENCY_HOURS", 24, least=1)
AMBER_TOOL_ALLOWED_HOSTS = env.words("AMBER_TOOL_ALLOWED_HOSTS")
AMBER_TOOL_SERVICES_AT_ONCE = env.integer("AMBER_TOOL_SERVICES_AT_ONCE", 4, least=1)
AMBER_TOOL_REFRESH_HOURS = env.number("AMBER_TOOL_REFRESH_HOURS", 24, least=0.1)
AMBER_TOOL_LOG_DAYS = env.integer("AMBER_TOOL_LOG_DAYS", 30, least=1)
AMBER_WEBHOOK_LOG_DAYS = env.integer("AMBER_WEBHOOK_LOG_DAYS", 14, least=2)
AMBER_USAGE_MONTHS = env.integer("AMBER_USAGE_MONTHS", 0)
AMBER_DEFAULT_PROMPT = env.text("AMBER_DEFAULT_PROMPT")
AMBER_CHAT_CONCURRENCY = env.integer("AMBER_CHAT_CONCURRENCY", 128, least=1)
AMBER_INGEST_CONCURRENCY = env.integer("AMBER_INGEST_CONCURRENCY", 2, least=1)
AMBER_TURNS_PER_ORGANIZATION = env.integer(
    "AMBER_TURNS_PER_ORGANIZATION", AMBER_CHAT_CONCURRENCY * 3 // 4
)
AMBER_QUEUE_SECONDS = env.number("AMBER_QUEUE_SECONDS", 30)
AMBER_STREAMS_PER_USER = env.integer("AMBER_STREAMS_PER_USER", 50)
AMBER_STREAMS_PER_KEY = env.integer("AMBER_STREAMS_PER_KEY", 500)
AMBER_STREAMS_PER_ORGANIZATION = env.integer("AMBER_STREAMS_PER_ORGANIZATION", 1_000)
AMBER_CHAT_WORKERS = env.integer("AMBER_CHAT_WORKERS", 0, least=0)
AMBER_WEB_PROCESSES = env.integer("AMBER_WEB_PROCESSES", 0, least=0)
AMBER_WEB_THREADS = env.integer("AMBER_WEB_THREADS", 16, least=1)
AMBER_DB_POOL = env.integer("AMBER_DB_POOL", 10, least=1)
AMBER_REPLICA_LAG_SECONDS = env.number("AMBER_REPLICA_LAG_SECONDS", 5, least=1)
AMBER_LOCK_SECONDS = env.number("AMBER_LOCK_SECONDS", 5)
AMBER_PREPARED_STATEMENTS = env.flag("AMBER_PREPARED_STATEMENTS", True)
AMBER_OPEN_SIGNUP = env.flag("AMBER_OPEN_SIGNUP", False)
AMBER_NEW_ORGANIZATION_TOKENS = env.integer("AMBER_NEW_ORGANIZATION_TOKENS", 200_000)
AMBER_MAX_ORGANIZATIONS = env.integer("AMBER_MAX_ORGANIZATIONS", 10)

# -- Services of the operator's that built-in tools use -------------------------------------------
AMBER_SEARXNG_URL = env.address("AMBER_SEARXNG_URL")
AMBER_TAVILY_API_KEY = env.text("AMBER_TAVILY_API_KEY")
AMBER_TAVILY_URL = env.address("AMBER_TAVILY_URL", "https://api.tavily.com")
AMBER_TTS_URL = env.address("AMBER_TTS_URL")
# The form's fields beside `text`, as ChatTTS-ui takes them.
AMBER_TTS_FORM = {
    "prompt": env.text("AMBER_TTS_PROMPT"),
    "voice": env.text("AMBER_TTS_VOICE", "3333"),
    "speed": env.numeral("AMBER_TTS_SPEED", "5"),
    "temperature": env.numeral("AMBER_TTS_TEMPERATURE", "0.00001"),
    "top_p": env.numeral("AMBER_TTS_TOP_P", "0.7"),
    "top_k": env.numeral("AMBER_TTS_TOP_K", "20"),
    "refine_max_new_token": env.numeral("AMBER_TTS_REFINE_MAX_NEW_TOKEN", "384"),
    "infer_max_new_token": env.numeral("AMBER_TTS_INFER_MAX_NEW_TOKEN", "2048"),
    "text_seed": env.numeral("AMBER_TTS_TEXT_SEED", "42"),
    "skip_refine": env.numeral("AMBER_TTS_SKIP_REFINE", "0"),
    "custom_voice": env.numeral("AMBER_TTS_CUSTOM_VOICE", "0"),
}
AMBER_TTS_MODEL = env.text("AMBER_TTS_MODEL")
AMBER_TTS_VOICE_NAME = env.text("AMBER_TTS_VOICE_NAME", "alloy")
AMBER_TRANSCRIPTION_MODEL = env.text("AMBER_TRANSCRIPTION_MODEL")
AMBER_TTS_MAX_CHARS = env.integer("AMBER_TTS_MAX_CHARS", 4_000, least=1)

# -- Apps ----------------------------------------------------------------------------------------
# without rows that only pages need: not in workers (amber/worker.py), 25 MB each.
_IS_WORKER = env.text("AMBER_ROLE") == "worker"
_WEB_APPS = [
    "django.contrib.humanize",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.headless",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "corsheaders",
]
INSTALLED_APPS = [
    *(
        [] if _IS_WORKER else ["unfold", "unfold.contrib.filters"]
    ),  # before the admin, whose templates it replaces
    "django.contrib.admin.apps.SimpleAdminConfig",  # urls.py discovers: workers need no admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.idp.oidc",
    "rest_framework",
    "amber",
    "accounts",
    "providers",
    "memory",
    "libraries",
    "tools",
    "assistants",
    "chats",
    "operations",
    "public_api",
    *([] if _IS_WORKER else _WEB_APPS),
]
MIDDLEWARE = [
    "amber.web.tenants.TenantMiddleware",
    "amber.lib.rest.wire.refuse_nul_in_address",
    "amber.lib.rest.api.AmberErrorMiddleware",
    "public_api.cors_middleware.CookielessCorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "amber.web.page_files.PageFilesMiddleware",
    "amber.web.answer_policy.keep_out_of_caches",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "amber.languages.choice.choose_language",
    "amber.web.health.HostsOfPeopleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "amber.web.answer_policy.PagePolicyMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.auth_pages.guard.StrictAuthJsonMiddleware",
]
ROOT_URLCONF = "amber.urls"
LOGIN_REDIRECT_URL = "/admin/"
UNFOLD = {
    "SITE_TITLE": "amber.web.branding.platform_name",
    "SITE_HEADER": "amber.web.branding.platform_name",
    "SITE_URL": "/",
    "SITE_ICON": "amber.web.branding.logo_address",
    "SITE_FAVICONS": [{"rel": "icon", "href": "amber.web.branding.logo_address"}],
    "COLORS": {"primary": AMBER_PALETTE},
    "SHOW_LANGUAGES": True,
    "DASHBOARD_CALLBACK": "amber.front_page.page.gather",
    "SIDEBAR": {"navigation": "amber.front_page.navigation.side_bar"},
    "LOGIN": {"form": "accounts.auth_pages.admin_login.SignInForm"},
    "STYLES": [lambda _: static("amber/admin-looks.css"), lambda _: static("amber/desk.css")],
    "SCRIPTS": [lambda _: static("amber/desk.js")],
}
ASGI_APPLICATION = "amber.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "amber" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "amber.web.branding.branding",
            ]
        },
    }
]

# Prices, costs and budgets of money are written with it.
AMBER_CURRENCY = env.text("AMBER_CURRENCY", "USD")

# -- Postgres and Redis ------------------------------------------------------------------------
# By role; without an address of its own, a role has that of the one before.
AMBER_DATABASES = {"app": env.database("DATABASE_URL")}
AMBER_DATABASES["system"] = env.database("AMBER_SYSTEM_DATABASE_URL", AMBER_DATABASES["app"])
AMBER_DATABASES["owner"] = env.database("AMBER_OWNER_DATABASE_URL", AMBER_DATABASES["system"])
# Postgres itself, where the addresses above lead to PgBouncer; empty where they lead there anyway.
AMBER_DATABASE_DIRECT = env.database_place("AMBER_DATABASE_DIRECT_URL")
AMBER_DATABASES["owner"] = {**AMBER_DATABASES["owner"], **AMBER_DATABASE_DIRECT}
_AS_OWNER = env.text("AMBER_CONNECT_AS") == "owner"  # commands that migrate, back up or restore
DATABASES: dict[str, dict[str, Any]] = {
    "default": AMBER_DATABASES["owner" if _AS_OWNER else "app"],
}
if not _AS_OWNER and AMBER_DATABASES["system"] != AMBER_DATABASES["app"]:
    DATABASES["system"] = AMBER_DATABASES["system"]
if not _AS_OWNER and (_replica := env.replica("DATABASE_REPLICA_URL", AMBER_DATABASES["app"])):
    DATABASES["replica"] = _replica
for _alias, _database in DATABASES.items():
    _database["CONN_MAX_AGE"] = 0
    _database["DISABLE_SERVER_SIDE_CURSORS"] = True  # PgBouncer in transaction mode
    _database["OPTIONS"] = {**_database["OPTIONS"]}
    # Workers wait for as long as it takes: nobody waits for them, and their leases are renewed meanwhile.
    _database["LOCK_SECONDS"] = 0 if _IS_WORKER or _AS_OWNER else AMBER_LOCK_SECONDS
    _database["OPTIONS"]["server_side_binding"] = True
    _database["OPTIONS"]["prepare_threshold"] = 5 if AMBER_PREPARED_STATEMENTS else None
    _database["OPTIONS"]["pool"] = {
        "min_size": 1 if _alias == "default" else 0,
        "max_size": AMBER_DB_POOL,
        "timeout": 1 if _alias == "replica" else 10,  # the primary answers in its place
    }
REDIS_URL = env.redis("REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {"default": {"BACKEND": "amber.lib.redis_cache.RedisCache"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
_FILES = files_address.read_storage("AMBER_FILES_URL") or files_address.folder_entry(
    AMBER_VAR_DIR / "files"
)
_OLD_FILES = files_address.read_storage("AMBER_FILES_OLD_URL")
if _FILES == _OLD_FILES:
    raise ImproperlyConfigured(
        "AMBER_FILES_OLD_URL names the storage that AMBER_FILES_URL names: remove it."
    )
if _OLD_FILES:
    _FILES = files_address.moving(_FILES, _OLD_FILES)
MEDIA_ROOT = AMBER_VAR_DIR / "files"
if _FILES["BACKEND"] == files_address.FOLDER:
    MEDIA_ROOT = _FILES["OPTIONS"].pop("location")
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# The image has the folder, and in it what `collectstatic` published; elsewhere files are served from where
# they are installed.
STATIC_ROOT = _folder if (_folder := BASE_DIR / "staticfiles").is_dir() else None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
_STATIC_FILES = (
    "amber.web.static_files.PublishedStaticFiles"
    if STATIC_ROOT
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": _FILES,
    "staticfiles": {"BACKEND": _STATIC_FILES},
}
STATIC_URL = "/static/"
WHITENOISE_AUTOREFRESH = DEBUG
DATA_UPLOAD_MAX_MEMORY_SIZE = max(AMBER_MAX_IMPORT_BYTES, AMBER_MAX_UPLOAD_BYTES)

# -- People ------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
ACCOUNT_ADAPTER = "accounts.auth_pages.adapter.AccountAdapter"
SOCIALACCOUNT_ADAPTER = "accounts.auth_pages.adapter.SocialAccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_PREVENT_ENUMERATION = True
HEADLESS_ONLY = True
HEADLESS_CLIENTS = ("browser",)
HEADLESS_FRONTEND_URLS = {
    name: f"{AMBER_PUBLIC_URL}/{path}"
    for name, path in {
        "account_confirm_email": "verify-email/{key}",
        "account_reset_password": "reset-password",
        "account_reset_password_from_key": "reset-password/{key}",
        "account_signup": "sign-up",
        "socialaccount_login_error": "login-error",
    }.items()
}
# Applications that people let in by OAuth (accounts/auth_pages/oauth_pages.py): each registers itself.
IDP_OIDC_ADAPTER = "accounts.auth_pages.oauth_adapter.OAuthAdapter"
IDP_OIDC_DCR_ENABLED = True
IDP_OIDC_DCR_REQUIRES_INITIAL_ACCESS_TOKEN = False
IDP_OIDC_REFRESH_TOKEN_EXPIRES_IN = 30 * 24 * 3_600
IDP_OIDC_RATE_LIMITS = {"client_registration": "10/m/ip"}
ALLAUTH_TRUSTED_PROXY_COUNT = env.integer("AMBER_TRUSTED_PROXIES", 0)
CSRF_FAILURE_VIEW = "amber.lib.rest.api.csrf_failure"
globals().update(env.mail_server("AMBER_SMTP_URL"))
AMBER_SENDS_MAIL = bool(env.text("AMBER_SMTP_URL"))
if AMBER_OPEN_SIGNUP and not AMBER_SENDS_MAIL:
    raise ImproperlyConfigured(
        "AMBER_OPEN_SIGNUP=1 needs AMBER_SMTP_URL: people who sign up prove their address by mail."
    )
if AMBER_SENDS_MAIL and not AMBER_PUBLIC_URL:
    # They would begin with the Host of whoever asks for a new password in somebody else's name.
    raise ImproperlyConfigured(
        "AMBER_SMTP_URL needs AMBER_PUBLIC_URL, the address people use: links in mails begin with it."
    )
# People must follow the link that was mailed to them before they can sign in.
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if AMBER_SENDS_MAIL else "none"
AMBER_RATE_INVITATION_MAIL = env.integer("AMBER_RATE_INVITATION_MAIL", 50)
DEFAULT_FROM_EMAIL = env.text("AMBER_EMAIL_FROM", "amber@localhost")

# -- REST --------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.sign_in.authentication.PrincipalAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.sign_in.authentication.HasPrincipal"],
    "DEFAULT_PAGINATION_CLASS": "amber.lib.rest.pages.NewestFirst",
    "DEFAULT_RENDERER_CLASSES": ["amber.lib.rest.wire.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["amber.lib.rest.wire.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "amber.lib.rest.openapi_descriptions.DescribedSchema",
    "DEFAULT_METADATA_CLASS": "amber.lib.rest.wire.NoMetadata",
    "EXCEPTION_HANDLER": "amber.lib.rest.api.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Amber",
    "VERSION": AMBER_VERSION,
    "DESCRIPTION": INTRODUCTION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # As JavaScript, since it names the plugin of amber/static/amber/api-docs.js. The key stays in this browser alone.
    "SWAGGER_UI_SETTINGS": """{
        deepLinking: true, docExpansion: "list", filter: true, persistAuthorization: true,
        displayRequestDuration: true, defaultModelsExpandDepth: 0, plugins: [AmberPlugin],
    }""",
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "MessageRoleEnum": "chats.models.ROLE_CHOICES",
        "MemberRoleEnum": "accounts.models.Role",
        "AuditActionEnum": "accounts.audit_actions.AuditAction",
        "ActorKindEnum": "accounts.principal.ActorKind",
        "TurnStatusEnum": "chats.models.STATUS_CHOICES",
        "ChatOwnerEnum": "chats.models.ChatOwner",
        "DocumentStageEnum": "libraries.models.DocumentStage",
        "DocumentStatusEnum": "libraries.models.DocumentStatus",
        "ToolKindEnum": "tools.models.ToolKind",
        "UsageKindEnum": "providers.models.UsageKind",
        "WebhookEventEnum": "public_api.models.WEBHOOK_EVENTS",
        "DeliveryStatusEnum": "public_api.models.DeliveryStatus",
        "AnswerFormEnum": ["text", "json_object", "json_schema"],
        "FunctionTypeEnum": ["function"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "chats.api.schema.document_events",
        "public_api.guests.schema.document_guest_events",
        "amber.lib.rest.schema.document_errors",
        "amber.lib.rest.openapi_descriptions.document_groups",
        "amber.web.openapi_texts.document_examples",
    ],
}

# -- Workers -----------------------------------------------------------------------------------
CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_BROKER_USE_SSL = broker_tls(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A Redis that refuses writes counts as away: the worker stays, and connects again.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_WORKER_CONSUMER = "amber.celery:Consumer"
# Nobody asks workers by Celery's own commands; they cost a connection each, which can hang.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
# Redis that hangs must not hang a request: workers poll every second, so 5 s cut nothing short, and
# a poll without an answer for 1 + 3 s, looked at every 3 s, has lost its connection.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": "amber:celery:",
    "visibility_timeout": 3_600,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "health_check_interval": 3,
    "socket_keepalive": True,
    **broker_options(REDIS_URL),
}

# -- Time, words, logs -------------------------------------------------------------------------
TIME_ZONE = "UTC"
# What programs read is English: REST, workers, commands. Pages have languages (amber/languages/).
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "amber" / "locale"]

# Where traces go to, OTEL_* says (amber/lib/tracing/).
AMBER_TRACE_CALLERS = env.flag("AMBER_TRACE_CALLERS", False)
AMBER_TRACE_PROPAGATE = env.words(
    "AMBER_TRACE_PROPAGATE", (), among=("providers", "tools", "webhooks")
)

AMBER_LOG_LEVEL = env.choice(
    "AMBER_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
)
AMBER_LOG_FORMAT = env.choice("AMBER_LOG_FORMAT", "json", ("json", "plain"))
_SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    hide_link_keys,
    *([spans.add_trace_id] if spans.is_on() else []),
]
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_SHARED_PROCESSORS,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processor": structlog.processors.JSONRenderer(),
            "foreign_pre_chain": _SHARED_PROCESSORS,
        },
        "plain": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processor": structlog.dev.ConsoleRenderer(colors=False),
            "foreign_pre_chain": _SHARED_PROCESSORS,
        },
    },
    "handlers": {"stdout": {"class": "logging.StreamHandler", "formatter": AMBER_LOG_FORMAT}},
    "root": {"handlers": ["stdout"], "level": AMBER_LOG_LEVEL},
    "loggers": {
        "httpx2": {"level": "WARNING"},
        # They log whole requests, with signatures.
        **{name: {"level": "WARNING"} for name in ("boto3", "botocore", "s3transfer", "urllib3")},
        "dulwich": {"level": "ERROR"},
        # The MCP SDK logs session ids, and what servers wrote; "client" is its client's session.
        "mcp": {"level": "CRITICAL"},
        "client": {"level": "CRITICAL"},
        # A wrong Host header is answered with 400; a traceback for each would fill the disk.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "celery": {"level": "WARNING"},
    },
}
