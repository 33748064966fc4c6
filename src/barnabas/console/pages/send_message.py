"""Sending a message: written by hand, or an edited copy of one that is there."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from barnabas.console.failures import sentence
from barnabas.console.messages.scan import SCAN_SETTINGS
from barnabas.console.messages.sending import WRITINGS, Draft, DraftError, check_target, draft_of, read_draft, send
from barnabas.console.pages.reading import consumer_of, message_of, place_of
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

FORM_BYTES_MAX: Final = 4 * 1024 * 1024
_WRITING_LABELS: Final = {"text": "text", "json": "JSON (checked)", "hex": "hexadecimal", "null": "null"}


async def form(visit: Visit) -> Response:
    """An empty form."""
    topic = visit.path("name")
    async with consumer_of(visit, SCAN_SETTINGS) as consumer:
        await check_target(consumer, topic, None)
    return _form(visit, topic, Draft())


async def form_of_message(visit: Visit) -> Response:
    """The form with a message that is there, to be edited and sent again."""
    topic, place = visit.path("name"), place_of(visit)
    message = await message_of(visit, topic, place)
    try:
        return _form(visit, topic, draft_of(message), copy_of=place)
    except DraftError as fault:
        return _form(visit, topic, Draft(), error=str(fault))


async def send_message(visit: Visit) -> Response:
    """Sends what stands in the form."""
    topic = visit.path("name")
    fields = await visit.form()
    draft = Draft(
        fields.get("key", ""),
        fields.get("key_as", "text"),
        fields.get("value", ""),
        fields.get("value_as", "text"),
        fields.get("headers", ""),
        fields.get("partition", ""),
    )
    try:
        outgoing = read_draft(draft)
        async with consumer_of(visit, SCAN_SETTINGS) as consumer:
            metadata = await send(consumer, await visit.cluster.producer(), topic, outgoing)
    except DraftError as fault:
        return _form(visit, topic, draft, error=str(fault))
    except KafkaError as fault:
        return _form(visit, topic, draft, error=sentence(fault))
    return visit.changed(
        f"Sent a message to {topic}: partition {metadata.partition}, offset {metadata.offset}", f"/topics/{segment(topic)}/messages"
    )


def _form(visit: Visit, topic: str, draft: Draft, *, error: str | None = None, copy_of: tuple[int, int] | None = None) -> Response:
    values: dict[str, Any] = {
        "topic": topic,
        "base": f"/topics/{segment(topic)}/messages",
        "draft": draft,
        "writings": [(writing, _WRITING_LABELS[writing]) for writing in WRITINGS],
        "copy_of": copy_of,
    }
    return visit.page("send_message.html", **values) if error is None else visit.refused("send_message.html", error, **values)


ROUTES: Final = (
    get("/topics/{name}/messages/send", form),
    get("/topics/{name}/messages/{partition}/{offset}/send", form_of_message),
    post("/topics/{name}/messages/send", send_message, form_bytes_max=FORM_BYTES_MAX),
)
