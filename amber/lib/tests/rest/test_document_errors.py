import pytest

from amber.lib.errors import CODES
from amber.lib.rest.schema import RESPONSES, document_errors

UUID = {"type": "string", "format": "uuid"}
REFERENCE = "#/components/schemas/Row"


def documented(path: str, method: str, **operation: object) -> dict[str, object]:
    schemas = {"Row": {"properties": {"id": UUID}}}
    result = {"paths": {path: {method: operation}}, "components": {"schemas": schemas}}
    made = document_errors(result, generator=None, request=None, public=True)
    responses: dict[str, object] = made["paths"][path][method].get("responses", {})
    return responses


def statuses(path: str, method: str, **operation: object) -> list[int]:
    return sorted(int(status) for status in documented(path, method, **operation))


def test_a_read_by_id_can_be_missing_or_unauthorised():
    assert statuses("/api/v1/a/{id}/", "get", security=[{"apiKey": []}]) == [401, 403, 404, 503]


def test_a_write_can_be_invalid_and_conflict():
    given = statuses("/api/v1/a/", "post", requestBody={}, security=[{"apiKey": []}])
    assert given == [400, 401, 403, 409, 413, 429, 503]


@pytest.mark.parametrize("schema", [UUID, {"type": "array", "items": UUID}, {"$ref": REFERENCE}])
def test_a_body_that_names_a_row_can_name_none(schema):
    body = {"content": {"application/json": {"schema": {"properties": {"a_id": schema}}}}}
    assert 404 in statuses("/api/v1/a/", "post", requestBody=body)


def test_an_open_read_needs_no_credential():
    assert statuses("/api/v1/a/", "get", security=[{}]) == [503]


def test_a_query_can_be_invalid():
    assert statuses("/api/v1/a/", "get", parameters=[{"in": "query", "name": "limit"}]) == [
        400,
        503,
    ]


def test_own_words_of_a_view_stay_and_the_form_of_errors_is_added():
    own = {"404": {"description": "mine"}, "204": {"description": "done"}}
    responses = documented("/api/v1/a/{id}/", "get", responses=own)
    form = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    assert responses["404"] == {"description": "mine", "content": form}
    assert responses["204"] == {"description": "done"}


def test_other_forms_of_errors_are_left_alone():
    assert statuses("/v1/models", "get", security=[{"apiKey": []}]) == []


def test_every_reference_leads_somewhere_and_names_its_codes():
    result = document_errors({"paths": {}}, generator=None, request=None, public=True)
    for status, name in RESPONSES.items():
        described = result["components"]["responses"][name]["description"]
        assert all(f"`{code}`" in described for code, (its, _) in CODES.items() if its == status)
    assert result["components"]["schemas"]["Error"]["required"] == ["error"]
