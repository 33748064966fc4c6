"""The settings of a topic: changed ones first, with source and documentation; a value is set, or removed so that the brokers' applies."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType, ConfigSource
from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType
from barnabas.console.cluster.settings_list import settings_of
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.routes import get, post, segment
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

_VALUE_MAX: Final = 100_000


async def settings(visit: Visit, error: str | None = None, name: str = "", value: str | None = None, status: int = 200) -> Response:
    topic = visit.path("name")
    known = await visit.cluster.configs.of(ConfigResource(ConfigResourceType.TOPIC, topic))
    search = visit.argument("q")
    listed = settings_of(known.config.entries, search, ConfigSource.DYNAMIC_TOPIC_CONFIG)
    edited = next(
        (
            setting
            for setting in settings_of(known.config.entries, own=ConfigSource.DYNAMIC_TOPIC_CONFIG)
            if setting.name == (name or visit.argument("edit"))
        ),
        None,
    )
    return visit.page(
        "topic_settings.html",
        status=status,
        error=error,
        topic=topic,
        base=f"/topics/{segment(topic)}",
        settings=listed,
        read_ms=known.read_ms,
        search=search,
        changed=sum(setting.is_changed for setting in listed),
        edited=edited if edited is not None and edited.can_change else None,
        value=value if value is not None else (edited.value or "") if edited is not None else "",
    )


async def change(visit: Visit) -> Response:
    topic = visit.path("name")
    form = await visit.form()
    name, value = form.get("setting", ""), form.get("value", "").strip()
    if not name or len(value) > _VALUE_MAX:
        return await settings(visit, "Choose a setting, and enter its value.", name, value, 422)
    is_reset = "reset" in form
    operation = AlterConfigOp(name, None, OpType.DELETE) if is_reset else AlterConfigOp(name, value)
    try:
        (await visit.cluster.admin.incremental_alter_configs({ConfigResource(ConfigResourceType.TOPIC, topic): [operation]})).all()
    except KafkaError as refusal:
        return await settings(visit, sentence(refusal), name, value, failure_of(refusal).status)
    what = f"{name} of {topic} is that of the brokers again." if is_reset else f"{name} of {topic} is set to {value or 'an empty value'}."
    return visit.changed(what, f"/topics/{segment(topic)}/settings")


ROUTES: Final = (get("/topics/{name}/settings", settings), post("/topics/{name}/settings", change))
