"""Define how a function's arguments become an HTTP request.

A plan is made once from the document (`tools.openapi.operation`), stored as JSON and followed by
`tools.openapi.request`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"

Where = Literal["path", "query", "header", "cookie", "body"]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one argument. `name` is the service's word for it, `argument` the model's.

    `style` and `explode` are OpenAPI's (https://spec.openapis.org/oas/v3.1.0#style-values); empty
    for body fields without an encoding of their own. `as_json`: the value is written as JSON.
    """

    argument: str
    name: str
    where: Where
    style: str = ""
    explode: bool = False
    as_json: bool = False
    allow_reserved: bool = False
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a request. `server` does not end with a slash; `path` begins with one.

    `path` holds {names}. `media_type` is empty if there is no body. `body_argument` is the argument
    that is the whole body; if it is empty, the body is an object of the places whose `where` is
    "body", and it is sent without any of them only if the service `needs_body`.
    """

    method: str
    server: str
    path: str
    places: Sequence[Place] = ()
    media_type: str = ""
    body_argument: str = ""
    needs_body: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the plan as JSON without defaults, as a tool's row holds hundreds of places."""
        return _plan_to_json(self) | {"places": [_plan_to_json(place) for place in self.places]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Plan":
        return cls(**{**data, "places": tuple(Place(**place) for place in data["places"])})


def _plan_to_json(value: Place | Plan) -> dict[str, Any]:
    return {name: part for name, part in asdict(value).items() if part}


def is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith("+json")
