"""Serve assistants over REST (docs/assistants.md): one view per address, one service per verb."""

from typing import Any, Final, cast
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.group_views import NO_GROUP, SHARED_FILTERS, GrantsView, GrantView, shared_rows
from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import (
    check_sharing,
    find_visible,
    get_managed,
    get_visible,
    get_writable,
)
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Missing
from assistants import services
from assistants.api.serializers import (
    AssistantSerializer,
    BindingSerializer,
    FunctionsSerializer,
    ScenePromptSerializer,
)
from assistants.models import Assistant, AssistantTool, ScenePrompt
from libraries.models import Library
from tools.models import Tool

SHARING: Final = ("shared", "public", "public_origins")
"""The fields that say who may use an assistant."""


class _OfAssistants(GenericAPIView[Assistant]):
    serializer_class = AssistantSerializer
    bound_keys_may = ("GET",)

    def get_serializer_context(self) -> dict[str, Any]:
        """Add the principal; there is no request where the view is only described."""
        principal = getattr(self.request, "auth", None)
        return {**super().get_serializer_context(), "principal": principal}


class AssistantsView(_OfAssistants):
    @extend_schema(
        parameters=SHARED_FILTERS,
        responses={200: AssistantSerializer(many=True), 404: NO_GROUP},
    )
    def get(self, request: Request) -> Response:
        """List the assistants that are yours, shared, or shared with a group of yours, newest
        first."""
        page = self.paginate_queryset(shared_rows(Assistant, request))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(responses={201: AssistantSerializer})
    def post(self, request: Request) -> Response:
        """Create an assistant. Returns 400 `unknown_model` for a model that no enabled alias
        names, and 404 for a library you cannot see."""
        principal = principal_of(request)
        fields = _load_library(principal, _validate(self, request))
        assistant = services.create_assistant(principal, fields=fields)
        return Response(self.get_serializer(assistant).data, status=201)


class AssistantView(_OfAssistants):
    def get(self, request: Request, assistant_id: UUID) -> Response:
        """Get an assistant with its prompt and settings."""
        assistant = get_visible(Assistant, principal_of(request), assistant_id)
        return Response(self.get_serializer(assistant).data)

    def patch(self, request: Request, assistant_id: UUID) -> Response:
        """Change the assistant. Its creator can, admins if it is shared, and groups that may edit
        it; others who see it get 403, as do members of such groups for `shared`, `public` and
        `public_origins`."""
        principal = principal_of(request)
        assistant = get_writable(Assistant, principal, assistant_id)
        changes = _load_library(principal, _validate(self, request, partial=True), assistant)
        check_sharing(assistant, principal, changes, names=SHARING)
        assistant = services.update_assistant(assistant, changes=changes, by=principal.actor)
        return Response(self.get_serializer(assistant).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assistant_id: UUID) -> Response:
        """Delete the assistant. Its creator can, and admins if it is shared. Chats with it are kept
        and continue without it."""
        principal = principal_of(request)
        assistant = get_managed(Assistant, principal, assistant_id)
        services.delete_assistant(assistant, by=principal.actor)
        return Response(status=204)


class AssistantGrantsView(GrantsView):
    shared_model = Assistant
    id_name = "assistant_id"


class AssistantGrantView(GrantView):
    shared_model = Assistant
    id_name = "assistant_id"


class DismissGuestsView(APIView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Sign out all guests: their tokens stop working at once. Their chats expire as usual."""
        services.dismiss_guests(get_writable(Assistant, principal_of(request), assistant_id))
        return Response(status=204)


class BindingsView(GenericAPIView[AssistantTool]):
    serializer_class = BindingSerializer
    bound_keys_may = ("GET",)

    @extend_schema(responses=BindingSerializer(many=True))
    def get(self, request: Request, assistant_id: UUID) -> Response:
        """List the tools that the assistant uses, newest binding first."""
        principal = principal_of(request)
        assistant = get_visible(Assistant, principal, assistant_id)
        rows = AssistantTool.objects.visible_to(principal).filter(assistant=assistant)
        with for_whole_organization():  # also tools that only its creator sees
            page = self.paginate_queryset(rows.select_related("tool"))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(responses={201: BindingSerializer})
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Let the assistant use a tool. Returns 404 for a tool you cannot see, and 409 for one
        that the assistant already uses."""
        principal = principal_of(request)
        assistant = get_writable(Assistant, principal, assistant_id)
        fields = _validate(self, request)
        tool = get_visible(Tool, principal, fields["tool_id"])
        binding = services.bind_tool(assistant, tool=tool, functions=fields.get("functions", ()))
        return Response(self.get_serializer(binding).data, status=201)


class BindingView(GenericAPIView[AssistantTool]):
    serializer_class = FunctionsSerializer

    @extend_schema(responses=BindingSerializer)
    def patch(self, request: Request, assistant_id: UUID, tool_id: UUID) -> Response:
        """Choose which of the tool's functions the assistant uses. An empty list means all.

        403 for more functions of a tool that you do not see.
        """
        principal = principal_of(request)
        binding = _binding(principal, assistant_id, tool_id)
        functions = _validate(self, request)["functions"]
        sees_tool = find_visible(Tool, principal, tool_id) is not None
        binding = services.choose_functions(binding, functions=functions, sees_tool=sees_tool)
        return Response(BindingSerializer(binding).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assistant_id: UUID, tool_id: UUID) -> Response:
        """Remove the tool from the assistant."""
        services.unbind_tool(_binding(principal_of(request), assistant_id, tool_id))
        return Response(status=204)


class ScenePromptsView(GenericAPIView[ScenePrompt]):
    serializer_class = ScenePromptSerializer
    bound_keys_may = ("GET",)

    @extend_schema(responses=ScenePromptSerializer(many=True))
    def get(self, request: Request, assistant_id: UUID) -> Response:
        """List the assistant's scene prompts, newest first."""
        principal = principal_of(request)
        assistant = get_visible(Assistant, principal, assistant_id)
        rows = ScenePrompt.objects.visible_to(principal).filter(assistant=assistant)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(responses={201: ScenePromptSerializer})
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Add a scene prompt. Returns 409 if the assistant already has one with this label."""
        assistant = get_writable(Assistant, principal_of(request), assistant_id)
        scene = services.add_scene_prompt(assistant, fields=_validate(self, request))
        return Response(self.get_serializer(scene).data, status=201)


class UsualScenesView(GenericAPIView[ScenePrompt]):
    serializer_class = ScenePromptSerializer
    pagination_class = None  # the answer is all that were added

    @extend_schema(request=None, responses={201: ScenePromptSerializer(many=True)})
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Add the usual scenes with their temperatures. Scenes whose label the assistant already
        has are left as they are."""
        assistant = get_writable(Assistant, principal_of(request), assistant_id)
        scenes = services.add_usual_scenes(assistant)
        return Response(self.get_serializer(scenes, many=True).data, status=201)


class ScenePromptView(GenericAPIView[ScenePrompt]):
    serializer_class = ScenePromptSerializer
    bound_keys_may = ("GET",)

    def get(self, request: Request, assistant_id: UUID, scene_id: UUID) -> Response:
        """Get a scene prompt."""
        scene = get_visible(ScenePrompt, principal_of(request), scene_id)
        return Response(self.get_serializer(_check_assistant(scene, assistant_id)).data)

    def patch(self, request: Request, assistant_id: UUID, scene_id: UUID) -> Response:
        """Change a scene prompt; omitted fields are kept. Returns 409 if the assistant already has
        another with this label."""
        scene = _check_assistant(
            get_writable(ScenePrompt, principal_of(request), scene_id), assistant_id
        )
        changes = _validate(self, request, partial=True)
        scene = services.update_scene_prompt(scene, changes=changes)
        return Response(self.get_serializer(scene).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assistant_id: UUID, scene_id: UUID) -> Response:
        """Delete a scene prompt. Chats that were pinned to it choose their scene again."""
        scene = _check_assistant(
            get_writable(ScenePrompt, principal_of(request), scene_id), assistant_id
        )
        services.delete_scene_prompt(scene)
        return Response(status=204)


def _validate(
    view: GenericAPIView[Any], request: Request, *, partial: bool = False
) -> dict[str, Any]:
    serializer = view.get_serializer(data=request.data, partial=partial)
    serializer.is_valid(raise_exception=True)
    return cast(dict[str, Any], serializer.validated_data)


def _load_library(
    principal: Principal, fields: dict[str, Any], current: Assistant | None = None
) -> dict[str, Any]:
    """Return the fields with the library that they name, which the principal must see.

    A library that stays is not checked again. Raises Missing.
    """
    if "library_id" not in fields:
        return fields
    library_id = fields.pop("library_id")
    if library_id is None:
        return {**fields, "library": None}
    if current is not None and library_id == current.library_id:
        return fields
    return {**fields, "library": get_visible(Library, principal, library_id)}


def _binding(principal: Principal, assistant_id: UUID, tool_id: UUID) -> AssistantTool:
    """Return the binding, if the principal may change it. Raises Missing, Forbidden."""
    assistant = get_writable(Assistant, principal, assistant_id)
    rows = AssistantTool.objects.writable_by(principal).filter(assistant=assistant)
    with for_whole_organization():  # its tool may be private to the assistant's creator
        binding = rows.filter(tool_id=tool_id).select_related("tool").first()
    if binding is None:
        raise Missing
    return cast(AssistantTool, binding)


def _check_assistant(scene: ScenePrompt, assistant_id: UUID) -> ScenePrompt:
    """Return the scene. Raises Missing if it is another assistant's."""
    if scene.assistant_id != assistant_id:
        raise Missing
    return scene
