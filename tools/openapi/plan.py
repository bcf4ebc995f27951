"""How a function's arguments become an HTTP request: decided once from the document, kept as JSON.

Values only: `tools.openapi.operation` makes them, `tools.openapi.request` follows them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"

Where = Literal["path", "query", "header", "cookie", "body"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one argument goes. `name` is the service's word, `argument` the model's.

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
    """`server` has no slash at its end; `path` begins with one and holds {names}.

    `media_type` is empty if there is no body. `body_argument` is the argument that is the whole
    body; if it is empty, the body is an object of the places whose `where` is "body", and sent
    without any of them only if the service `needs_body`.
    """

    method: str
    server: str
    path: str
    places: Sequence[Place] = ()
    media_type: str = ""
    body_argument: str = ""
    needs_body: bool = False

    def as_data(self) -> dict[str, Any]:
        """Without what is as it is by default: a tool's row holds hundreds of places."""
        return _plan_to_json(self) | {"places": [_plan_to_json(place) for place in self.places]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Plan":
        return cls(**{**data, "places": tuple(Place(**place) for place in data["places"])})


def _plan_to_json(value: Place | Plan) -> dict[str, Any]:
    return {name: part for name, part in asdict(value).items() if part}


def is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith("+json")
