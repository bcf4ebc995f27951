"""Register what only web processes need of the public API: its errors' form, and CORS."""

from corsheaders.signals import check_request_enabled

from amber.lib.rest.api import speak_form
from public_api import cors
from public_api.mcp import errors as mcp_errors
from public_api.openai.errors import PREFIX, openai_form

speak_form(PREFIX, openai_form)
speak_form(mcp_errors.PREFIX, mcp_errors.mcp_form)
check_request_enabled.connect(cors.allow_registered_origin, dispatch_uid="public_api")
check_request_enabled.connect(cors.allow_guests_page, dispatch_uid="guests")
