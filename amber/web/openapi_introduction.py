"""Introduce the REST API on the first screen of /api/docs/: what holds for every operation."""

from typing import Final

INTRODUCTION: Final = """
The REST API of Amber: what a person can do on its web page, a program can do here. Guides, settings and
the events of streams are in the [documentation](/docs/).

- **Credentials.** Send an API key as `Authorization: Bearer amb_live_…`. Make one with `POST /api/v1/api-keys/`,
  on the web page under *Settings*, or with `manage.py create_account --api-key`. A key acts for its user, within
  its scope. Here, press *Authorize*: this browser keeps the key until you log out there. Pages of your own use
  the session of a signed-in person. [More on keys](/docs/accounts/)
- **Errors** have one form: `{"error": {"code", "message", "fields", "retryable", "request_id"}}`. Decide by `code`, not by
  `message`. An id that does not exist and an id that is not yours both answer 404. Every answer carries
  `X-Request-Id`. After 429 and 503, wait for `Retry-After`. [All codes](/docs/errors/)
- **Paging.** Lists answer `{"results", "next", "previous"}`, newest first. Follow `next` until it is null; do
  not build cursors yourself. `?limit=` sets the size of a page.
- **Streams.** A question is answered by a *turn*. With `Accept: text/event-stream` the answer to your POST is the
  turn's stream; without it you get 201 and may watch `GET /api/v1/turns/{id}/events/` later. Events are numbered:
  reconnect with `Last-Event-ID` and you miss nothing. The turn runs whether or not anybody watches.
  [All events](/docs/stream-protocol/)
- **Idempotency.** A POST that starts work accepts `Idempotency-Key`. Repeat it with the same key after a broken
  connection: you get the first answer again, and nothing happens twice.
- **OpenAI's clients** work with the base address `/v1` and the same key; the model is `assistant:` and its slug.
  [More](/docs/public-api/)
"""
