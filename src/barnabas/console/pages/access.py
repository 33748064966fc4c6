"""Access control: the list of ACLs, new ones, and two questions: what may a user do, and who may do something to a resource?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from barnabas.administration.acl_answers import ANY_HOST, EVERYBODY, Answer, operations_of, what_may, who_may
from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
from barnabas.console.failures import failure_of, sentence
from barnabas.console.web.routes import get, post
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.security.acl import (
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation

ROWS_A_PAGE: Final = 200
NAME_MAX: Final = 10_000
TABS: Final = (
    ("/access", "ACLs"),
    ("/access/user", "What may a user do?"),
    ("/access/resource", "Who may do this?"),
    ("/access/users", "SCRAM users"),
    ("/access/tokens", "Delegation tokens"),
)
TYPES: Final = tuple(kind for kind in ResourceType if kind not in (ResourceType.UNKNOWN, ResourceType.ANY))
CLUSTER_NAME: Final = "kafka-cluster"
NO_AUTHORIZER: Final = (
    "This cluster checks no ACLs: everybody who can connect may do everything. To check them, set authorizer.class.name="
    "kafka.security.authorizer.AclAuthorizer and super.users on every broker (Apache Kafka with KRaft: "
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer), and start the brokers again. "
    "`barnabas up --secure` sets up all of it."
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The ACLs of the cluster, or in `unknown` why they cannot be shown. `super_users` and `open_by_default` are None where the broker's
    settings are not visible."""

    bindings: tuple[AclBinding, ...]
    unknown: str | None = None
    super_users: tuple[str, ...] | None = None
    open_by_default: bool | None = None


async def acls(visit: Visit, error: str | None = None, entered: Mapping[str, str] | None = None, status: int = 200) -> Response:
    rules = await _rules(visit)
    search, kind = visit.argument("q").lower(), visit.argument("type")
    matching = [
        binding
        for binding in rules.bindings
        if (not kind or binding.pattern.resource_type.name == kind)
        and (
            not search
            or any(search in text.lower() for text in (binding.pattern.name, binding.entry.principal, binding.entry.operation.title))
        )
    ]
    pages = max(-(-len(matching) // ROWS_A_PAGE), 1)
    page = visit.number_argument("page", 1, 1, pages)
    return visit.page(
        "access_acls.html",
        status=status,
        tabs=TABS,
        rules=rules,
        rows=matching[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE],
        total=len(matching),
        page=page,
        pages=pages,
        search=visit.argument("q"),
        kind=kind,
        types=TYPES,
        operations=[operation for operation in AclOperation if operation > AclOperation.ANY],
        error=error,
        entered=entered or {},
    )


async def create(visit: Visit) -> Response:
    form = await visit.form()
    binding = _binding(form)
    if isinstance(binding, str):
        return await acls(visit, binding, form, 422)
    try:
        (await visit.cluster.admin.create_acls([binding])).all()
    except KafkaError as refusal:
        return await acls(visit, sentence(refusal), form, failure_of(refusal).status)
    return visit.changed(f"Added the ACL: {words_of(binding)}.", "/access")


async def delete(visit: Visit) -> Response:
    form = await visit.form()
    binding = _binding(form)
    if isinstance(binding, str):
        return await acls(visit, binding, None, 422)
    try:
        (await visit.cluster.admin.delete_acls([binding.to_filter()])).all()
    except KafkaError as refusal:
        return await acls(visit, sentence(refusal), None, failure_of(refusal).status)
    return visit.changed(f"Deleted the ACL: {words_of(binding)}.", "/access")


async def of_user(visit: Visit) -> Response:
    rules = await _rules(visit)
    name, host = visit.argument("name").strip(), visit.argument("host").strip()
    principal = principal_of(name) if name else ""
    answers = what_may(rules.bindings, principal, host or ANY_HOST) if principal else []
    return visit.page(
        "access_user.html",
        tabs=TABS,
        rules=rules,
        name=name,
        host=host,
        principal=principal,
        resources=_by_resource(answers),
        is_super=rules.super_users is not None and principal in rules.super_users,
        principals=_principals(rules),
    )


async def of_resource(visit: Visit) -> Response:
    rules = await _rules(visit)
    kind, name = visit.argument("type", "TOPIC"), visit.argument("name").strip()
    resource_type = ResourceType.from_string(kind)
    resource_type = resource_type if resource_type in TYPES else ResourceType.TOPIC
    name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else name
    operation = AclOperation.from_string(visit.argument("operation", "WRITE"))
    choices = operations_of(resource_type)
    operation = operation if operation in choices else choices[0]
    answers: list[Answer] = []
    if name:
        pattern = ResourcePattern(resource_type, name)
        answers = who_may(rules.bindings, operation, pattern, default=rules.open_by_default is True)
    return visit.page(
        "access_resource.html",
        tabs=TABS,
        rules=rules,
        resource_type=resource_type,
        name=name,
        operation=operation,
        answers=answers,
        everybody=EVERYBODY,
        several={answer.principal for answer in answers if answer.host != ANY_HOST},
        types=TYPES,
        operations=sorted({one for resource_type in TYPES for one in operations_of(resource_type)}),
        topics=sorted((await visit.cluster.snapshots.current()).topics)[:2_000],
    )


async def _rules(visit: Visit) -> Rules:
    try:
        bindings = await visit.cluster.admin.describe_acls()
    except SecurityDisabled:
        return Rules((), NO_AUTHORIZER)
    except KafkaError as error:
        return Rules((), f"{sentence(error)} Listing ACLs needs Describe on the cluster.")
    bindings.sort(
        key=lambda binding: (binding.pattern.resource_type, binding.pattern.name, binding.pattern.pattern_type, binding.entry.principal)
    )
    settings = await _settings(visit)
    supers = settings.get("super.users")
    default = settings.get("allow.everyone.if.no.acl.found")
    return Rules(
        tuple(bindings),
        super_users=None if supers is None else tuple(part.strip() for part in supers.split(";") if part.strip()),
        open_by_default=None if default is None else default.strip().lower() == "true",
    )


async def _settings(visit: Visit) -> dict[str, str | None]:
    """The settings of one broker that this user may see; none if it may not."""
    snapshot = await visit.cluster.snapshots.current()
    if not snapshot.brokers:
        return {}
    resource = ConfigResource(ConfigResourceType.BROKER, str(snapshot.brokers[0].id))
    try:
        config = (await visit.cluster.configs.of(resource)).config
    except KafkaError:
        return {}
    return {name: config[name].value for name in ("super.users", "allow.everyone.if.no.acl.found") if name in config}


def _binding(form: Mapping[str, str]) -> AclBinding | str:
    """The ACL of a form, or what is wrong with it."""
    resource_type = ResourceType.from_string(form.get("type", ""))
    operation = AclOperation.from_string(form.get("operation", ""))
    name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else form.get("name", "").strip()
    pattern_type = PatternType.PREFIXED if form.get("pattern", "").upper() == "PREFIXED" else PatternType.LITERAL
    permission = AclPermissionType.DENY if form.get("permission", "").upper() == "DENY" else AclPermissionType.ALLOW
    principal, host = form.get("principal", "").strip(), form.get("host", "").strip() or ANY_HOST
    if resource_type not in TYPES:
        return "Choose what the ACL is about."
    if not name or len(name) > NAME_MAX:
        return "Enter the name of the resource, or * for all."
    if not principal:
        return "Enter a principal, such as User:alice, or User:* for everybody."
    if operation is not AclOperation.ALL and operation not in operations_of(resource_type):
        known = ", ".join(one.title for one in operations_of(resource_type))
        return f"{operation.title} does not exist for a {_lower(resource_type)}. There are All, {known}."
    return AclBinding(
        ResourcePattern(resource_type, name, pattern_type), AccessControlEntry(principal_of(principal), host, operation, permission)
    )


def principal_of(name: str) -> str:
    """A principal; a name without a type is that of a user."""
    return name if ":" in name else f"User:{name}"


def words_of(binding: AclBinding) -> str:
    """An ACL in one line."""
    pattern, entry = binding.pattern, binding.entry
    prefixed = " that begin with" if pattern.pattern_type is PatternType.PREFIXED else ""
    host = "" if entry.host == ANY_HOST else f" from {entry.host}"
    verb = "may" if entry.permission_type is AclPermissionType.ALLOW else "may not"
    kind = _lower(pattern.resource_type) + ("s" if prefixed else "")
    return f"{entry.principal}{host} {verb} {entry.operation.title} {kind}{prefixed} {pattern.name}"


def _lower(resource_type: ResourceType) -> str:
    return resource_type.name.replace("_", " ").lower()


def _by_resource(answers: Sequence[Answer]) -> list[tuple[ResourcePattern, list[Answer], list[Answer]]]:
    """Each resource with what is allowed and what an ACL denies."""
    resources: dict[ResourcePattern, tuple[list[Answer], list[Answer]]] = {}
    for answer in answers:
        resources.setdefault(answer.pattern, ([], []))[0 if answer.is_allowed else 1].append(answer)
    return [(pattern, allowed, denied) for pattern, (allowed, denied) in resources.items()][:1_000]


def _principals(rules: Rules) -> list[str]:
    return sorted({binding.entry.principal for binding in rules.bindings})[:1_000]


ROUTES: Final = (
    get("/access", acls),
    post("/access", create),
    post("/access/delete", delete),
    get("/access/user", of_user),
    get("/access/resource", of_resource),
)
