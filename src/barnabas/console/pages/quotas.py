"""Quotas of users, client ids and addresses: list, set and remove, and which of several applies to a client."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from barnabas.administration.quota_choice import Applied, quotas_of
from barnabas.client.admin.access.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.routes import get, post
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError

ROWS_MAX: Final = 1_000
ANONYMOUS: Final = "ANONYMOUS"  # the user of clients that do not authenticate
NAME_MAX: Final = 1_000
USER, CLIENT, IP = ClientQuotaEntity.USER, ClientQuotaEntity.CLIENT_ID, ClientQuotaEntity.IP
# Name, label, unit and what it bounds.
QUOTAS: Final = (
    ("producer_byte_rate", "Produce", "bytes/s", "Bytes a second that a client may send, on each broker."),
    ("consumer_byte_rate", "Fetch", "bytes/s", "Bytes a second that a client may fetch, on each broker."),
    ("request_percentage", "Requests", "%", "Time of request threads that a client may use, on each broker: 100 is one thread."),
    ("controller_mutation_rate", "Changes of topics", "partitions/s", "Partitions a second that a client may create or delete."),
)
IP_QUOTAS: Final = (
    ("connection_creation_rate", "New connections", "connections/s", "Connections a second that an address may open, on each broker."),
)
# What a form may be about: a choice, its label, and the types of its entity.
SCOPES: Final = (
    ("user", "One user", (USER,)),
    ("client", "One client id", (CLIENT,)),
    ("user-client", "A user with one client id", (USER, CLIENT)),
    ("ip", "One address", (IP,)),
)


async def quotas(visit: Visit, error: str | None = None, entered: Mapping[str, str] | None = None, status: int = 200) -> Response:
    unknown: str | None = None
    known: dict[ClientQuotaEntity, dict[str, float]] = {}
    try:
        known = await visit.cluster.admin.describe_client_quotas(ClientQuotaFilter.all())
    except KafkaError as refusal:
        unknown = f"{sentence(refusal)} Listing quotas needs DescribeConfigs on the cluster."
    search = visit.argument("q").lower()
    matching = [entity for entity in sorted(known, key=_order) if search in title_of(entity).lower()]
    user, client = visit.argument("user").strip(), visit.argument("client").strip()
    applied: dict[str, Applied | None] = quotas_of(known, user or ANONYMOUS, client) if user or client else {}
    return visit.page(
        "quotas.html",
        status=status,
        rows=[(entity, title_of(entity), _values(known[entity])) for entity in matching[:ROWS_MAX]],
        total=len(matching),
        search=visit.argument("q"),
        quotas=QUOTAS,
        ip_quotas=IP_QUOTAS,
        scopes=SCOPES,
        user=user,
        client=client,
        applied=[(label, unit, applied[name], title_of(one.entity) if (one := applied[name]) else "") for name, label, unit, _ in QUOTAS]
        if applied
        else [],
        unknown=unknown,
        error=error,
        entered=entered or {},
    )


async def change(visit: Visit) -> Response:
    """Sets quotas of one entity: an empty field leaves a quota as it is."""
    form = await visit.form()
    entity = _entity(form)
    if isinstance(entity, str):
        return await quotas(visit, entity, form, 422)
    names = IP_QUOTAS if IP in entity else QUOTAS
    values: dict[str, float | None] = {}
    for name, label, _, _ in names:
        text = form.get(name, "").strip()
        if not text:
            continue
        value = _positive(text)
        if value is None:
            return await quotas(visit, f"{label} must be a number above 0, without a unit.", form, 422)
        values[name] = value
    if not values:
        what = "New connections" if IP in entity else "at least one quota"
        return await quotas(visit, f"Enter {what}.", form, 422)
    try:
        (await visit.cluster.admin.alter_client_quotas([ClientQuotaAlteration(entity, values)])).all()
    except KafkaError as refusal:
        return await quotas(visit, sentence(refusal), form, failure_of(refusal).status)
    return visit.changed(
        f"The quotas of {title_of(entity)} are set: {', '.join(f'{name}={value:g}' for name, value in values.items())}.", "/quotas"
    )


async def remove(visit: Visit) -> Response:
    form = await visit.form()
    entity = _entity_of_row(form)
    name = form.get("quota", "")
    if entity is None or name not in [one[0] for one in (*QUOTAS, *IP_QUOTAS)]:
        return await quotas(visit, "Choose a quota from the list.", None, 422)
    try:
        (await visit.cluster.admin.alter_client_quotas([ClientQuotaAlteration(entity, {name: None})])).all()
    except KafkaError as refusal:
        return await quotas(visit, sentence(refusal), None, failure_of(refusal).status)
    return visit.changed(f"The quota {name} of {title_of(entity)} is removed.", "/quotas")


def title_of(entity: ClientQuotaEntity) -> str:
    """An entity in words."""
    labels = {USER: "user", CLIENT: "client id", IP: "address"}
    parts = [
        f"{labels[kind]} {entity[kind]}" if entity[kind] is not None else f"every other {labels[kind]}"
        for kind in (USER, CLIENT, IP)
        if kind in entity
    ]  # fmt: skip
    return " with ".join(parts)


def _entity(form: Mapping[str, str]) -> ClientQuotaEntity | str:
    """The entity of a form, or what is wrong with it. An empty name is the default of its type."""
    kinds = next((kinds for key, _, kinds in SCOPES if key == form.get("scope")), None)
    if kinds is None:
        return "Choose what the quota is for."
    names: dict[str, str | None] = {}
    for kind in kinds:
        name = form.get(kind, "").strip()
        if len(name) > NAME_MAX:
            return "The name is too long."
        if kind == IP and name and not _is_address(name):
            return f"{name} is not an IP address. Enter an address such as 10.0.0.7, or leave it empty for every other address."
        names[kind] = name or None
    return ClientQuotaEntity(names)


def _entity_of_row(form: Mapping[str, str]) -> ClientQuotaEntity | None:
    """The entity that a row of the list names: a field with its name, or `default-` and its type for a default."""
    names: dict[str, str | None] = {kind: form[kind] for kind in (USER, CLIENT, IP) if kind in form}
    names |= {kind: None for kind in (USER, CLIENT, IP) if f"default-{kind}" in form}
    return ClientQuotaEntity(names) if names else None


def _values(known: Mapping[str, float]) -> list[tuple[str, str, str, float]]:
    """Name, label, unit and value of each quota; one that this console does not know has its name as label."""
    labels = {name: (label, unit) for name, label, unit, _ in (*QUOTAS, *IP_QUOTAS)}
    return [(name, *labels.get(name, (name, "")), value) for name, value in sorted(known.items())]


def _positive(text: str) -> float | None:
    try:
        value = float(text.replace(",", "")) if len(text) < 40 else 0.0
    except ValueError:
        return None
    return value if 0 < value < 2**63 else None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _order(entity: ClientQuotaEntity) -> tuple[list[str], list[tuple[bool, str]]]:
    kinds = sorted(entity)
    return kinds, [(entity[kind] is None, entity[kind] or "") for kind in kinds]


ROUTES: Final = (get("/quotas", quotas), post("/quotas", change), post("/quotas/remove", remove))
