"""Gather what the page of a turn shows beside its columns: the two pictures, with their details.

Two queries, three for a turn in a chat: its calls, and the names of documents. What people wrote is
left out.
"""

from collections.abc import Mapping
from typing import Any

from amber.lib.operator_pages import readable_json
from chats.api.manifest_serializers import in_order
from chats.context.manifest import without_texts
from chats.inspection.context_bar import draw_context
from chats.inspection.timeline import call_marks, draw_timeline
from chats.models import Turn
from libraries.models import Document


def picture_context(turn: Turn) -> dict[str, Any]:
    """Return what `admin/chats/turn_pictures.html` draws."""
    manifest = turn.manifest if isinstance(turn.manifest, dict) else {}
    return {
        "turn": turn,
        "bar": draw_context(manifest, turn.usage),
        "timeline": draw_timeline(turn, call_marks(turn)),
        "usage": turn.usage or {},
        "model": manifest.get("model", ""),
        "model_fallback": manifest.get("model_fallback"),
        "scene": _scene_of(manifest),
        "cacheable_percent": _percent_of(manifest.get("cacheable_share")),
        "notes": [str(note) for note in _list_of(manifest, "notes")],
        "passages": _passages(turn, manifest),
        "blocks": [each for each in _list_of(manifest, "blocks") if isinstance(each, dict)],
        "tools": [each for each in _list_of(manifest, "tools") if isinstance(each, dict)],
        "recorded": readable_json(in_order(without_texts(manifest))) if manifest else "",
    }


def _passages(turn: Turn, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the passages with the names that their documents have now; empty if deleted."""
    passages = [each for each in _list_of(manifest, "passages") if isinstance(each, dict)]
    ids = {each["document_id"] for each in passages if each.get("document_id")}
    found = Document.objects.filter(pk__in=ids, organization_id=turn.organization_id)
    names = {str(pk): name for pk, name in found.values_list("pk", "name")} if ids else {}
    return [{**each, "document": names.get(str(each.get("document_id")), "")} for each in passages]


def _scene_of(manifest: Mapping[str, Any]) -> str:
    scene = manifest.get("scene")
    return str(scene.get("label") or "") if isinstance(scene, Mapping) else ""


def _list_of(manifest: Mapping[str, Any], name: str) -> list[Any]:
    given = manifest.get(name)
    return given if isinstance(given, list) else []


def _percent_of(share: Any) -> int | None:
    return round(100 * share) if isinstance(share, int | float) else None
