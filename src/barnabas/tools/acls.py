"""Add, remove or list access control lists, as kafka-acls does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. Which rules a command line means is decided by plain functions;
where Kafka prints a set in no particular order, this prints it in the order of the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.administration.acl_operations import SUPPORTED
from barnabas.tools.command_line.failures import BadArgument, ClientNotMade, described, execution, failed_with_message, finish, message_of
from barnabas.tools.command_line.options import Option, Options, ShowUsage, ShowVersion, UsageError
from barnabas.tools.command_line.text import JSON, heading, print_json
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.security.acl import AccessControlEntry, AclBinding, ResourcePattern, ResourcePatternFilter
    from barnabas.security.operations import AclOperation

ABOUT: Final = "This tool helps to manage acls on kafka."
_OPERATIONS: Final = (
    "READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CLUSTER_ACTION", "IDEMPOTENT_WRITE",
    "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
_CLUSTER_NAME: Final = "kafka-cluster"
_ANYWHERE: Final = "*"
_PRODUCER_ON_TOPIC: Final = ("WRITE", "DESCRIBE", "CREATE")
_PRODUCER_ON_TRANSACTIONAL_ID: Final = ("WRITE", "DESCRIBE")
_CONSUMER_ON_TOPIC: Final = ("READ", "DESCRIBE")
_CONSUMER_ON_GROUP: Final = ("READ",)
# Which option names resources of which type, in Kafka's order; the cluster, which has no name, stands between topics and groups.
_RESOURCES: Final = {
    "topic": "TOPIC",
    "cluster": "CLUSTER",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
_ADDRESSES: Final = "host:port, several separated by commas."
OPTIONS: Final = (
    Option("bootstrap-server", f"The brokers to connect to: {_ADDRESSES}", "required", described_as="server to connect to"),
    Option("bootstrap-controller", f"The controllers to connect to: {_ADDRESSES}", "required", described_as="controller to connect to"),
    Option("command-config", "A properties file with settings of the admin client.", "optional", described_as="command-config"),
    Option("add", "Add rules."),
    Option("remove", "Remove rules."),
    Option("list", "List the rules of the resources given by --topic, --group, --cluster and so on, or all."),
    Option("topic", "A topic that the rules are about; '*' for all.", "required", described_as="topic"),
    Option("cluster", "The rules are about the cluster."),
    Option("group", "A consumer group that the rules are about; '*' for all.", "required", described_as="group"),
    Option("transactional-id", "A transactional id that the rules are about; '*' for all.", "required", described_as="transactional-id"),
    Option("delegation-token", "A delegation token that the rules are about; '*' for all.", "required", described_as="delegation-token"),
    Option("user-principal", "A user that the rules are about, whose tokens others may create.", "required", described_as="user-principal"),
    Option(
        "resource-pattern-type",
        "How names of resources are meant. Rules to add are 'literal' or 'prefixed'. To list or remove, 'any' finds both kinds by "
        "their exact name, and 'match' all rules that apply to a resource of that name: be careful with it and --remove.",
        "required",
        described_as="ANY|MATCH|LITERAL|PREFIXED",
        default="LITERAL",
    ),
    Option(
        "operation",
        "What is allowed or denied; may be repeated. One of:\n"
        + "\n".join("\t" + "".join(word.capitalize() for word in name.split("_")) for name in ("ALL", *_OPERATIONS)),
        "required",
        default="All",
    ),
    Option("allow-principal", "Who may, as type:name; User:'*' is everybody.", "required", described_as="allow-principal"),
    Option(
        "deny-principal",
        "Who may not, as type:name. Whoever is not allowed is denied anyway; this makes exceptions, and it outweighs what allows.",
        "required",
        described_as="deny-principal",
    ),
    Option("allow-host", "From where --allow-principal may; from everywhere without it.", "required", described_as="allow-host"),
    Option("deny-host", "From where --deny-principal may not; from nowhere without it.", "required", described_as="deny-host"),
    Option("principal", "With --list: only the rules about this principal; may be repeated.", "optional", described_as="principal"),
    Option("producer", "What a producer needs: WRITE, DESCRIBE and CREATE on --topic."),
    Option("consumer", "What a consumer needs: READ and DESCRIBE on --topic, READ on --group."),
    Option("idempotent", "With --producer: let it be idempotent. With a --transactional-id it may be anyway."),
    Option("force", "Do not ask before removing."),
    JSON,
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options.or_usage(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    _check(options)
    run = _add if options.has("add") else _remove if options.has("remove") else _list
    controllers = options.optional("bootstrap-controller")
    try:
        with (
            open_admin(
                options.optional("bootstrap-server"), options.optional("command-config"), bootstrap_controllers=controllers
            ) as admin,
            execution(),
        ):
            run(admin, options)
    except (ShowUsage, ShowVersion, BrokenPipeError):
        raise
    except Exception as error:
        print(f"Error while executing ACL command: {message_of(error)}")
        if isinstance(error, ClientNotMade):
            print(f"Caused by: {described(error.cause)}")
        return 1
    return 0


def _check(options: Options) -> None:
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        options.usage("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not options.has("bootstrap-server") and not options.has("bootstrap-controller"):
        options.usage("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(map(options.has, ("add", "remove", "list"))) != 1:
        options.usage("Command must include exactly one action: --list, --add, --remove. ")
    options.refuse_with("list", ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"))
    for role in ("producer", "consumer"):
        options.refuse_with(role, ("operation", "deny-principal", "deny-host"))
    if options.has("principal") and not options.has("list"):
        options.usage("The --principal option is only available if --list is set")
    if options.has("producer") and not options.has("topic"):
        options.usage("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        options.usage("The --idempotent option is only available if --producer is set")
    if options.has("consumer"):
        foreign = not options.has("producer") and (options.has("cluster") or options.has("transactional-id"))
        if not options.has("topic") or not options.has("group") or foreign:
            options.usage(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
                "should be specified."
            )


def _add(admin: Admin, options: Options) -> None:
    from barnabas.security.acl import AccessControlEntryFilter, AclBinding, AclBindingFilter, ResourcePattern

    if not _pattern_type(options).is_specific:
        kind = _pattern_type(options).name
        options.usage(f"A '--resource-pattern-type' value of '{kind}' is not valid when adding acls.")
    entries_by_filter = rules(options)
    if not all(entries_by_filter.values()):
        options.usage("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for resource, entries in entries_by_filter.items():
        assert resource.name is not None
        pattern = ResourcePattern(resource.resource_type, resource.name, resource.pattern_type)
        there = set(admin.describe_acls(AclBindingFilter(resource, AccessControlEntryFilter())))
        bindings = [AclBinding(pattern, entry) for entry in entries]
        for binding in bindings:
            if binding in there:
                print(f"Acl {binding} already exists.")
        new = [binding for binding in bindings if binding not in there]
        if new:
            print(f"Adding ACLs for resource `{pattern}`: \n {_lines(binding.entry for binding in new)}\n")
            admin.create_acls(new).all()


def _remove(admin: Admin, options: Options) -> None:
    from barnabas.security.acl import AccessControlEntryFilter, AclBindingFilter

    for resource, entries in rules(options).items():
        if not entries:
            question = f"Are you sure you want to delete all ACLs for resource filter `{filter_text(resource)}`? (y/n)"
        else:
            question = f"Are you sure you want to remove ACLs: \n {_lines(entries)}\n from resource filter `{filter_text(resource)}`? (y/n)"
        if not options.has("force") and not _confirmed(question):
            continue
        which = [entry.to_filter() for entry in entries] or [AccessControlEntryFilter()]
        for results in admin.delete_acls([AclBindingFilter(resource, entry_filter) for entry_filter in which]).all().values():
            for result in results:
                if result.error is not None:
                    raise result.error


def _confirmed(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(admin: Admin, options: Options) -> None:
    from barnabas.security.acl import AclBindingFilter

    filters = resource_filters(options)
    principals = _principals(options, "principal")
    bindings: list[AclBinding] = []
    for acl_filter in [AclBindingFilter(one) for one in filters] or [AclBindingFilter.ANY]:
        bindings.extend(admin.describe_acls(acl_filter))
    bindings = list(dict.fromkeys(bindings))
    if options.has("json"):
        shown = [binding for binding in bindings if not principals or binding.entry.principal in principals]
        print_json([_as_json(binding) for binding in shown])
        return
    if not principals:
        _print(bindings)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _print([binding for binding in bindings if binding.entry.principal == principal])


def _print(bindings: Sequence[AclBinding]) -> None:
    by_resource: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for binding in bindings:
        by_resource.setdefault(binding.pattern, []).append(binding.entry)
    for pattern, entries in by_resource.items():
        title = heading(f"Current ACLs for resource `{pattern}`:")
        print(f"{title}\n{_lines(entries)}\n")


def _lines(entries: Iterable[AccessControlEntry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


def _as_json(binding: AclBinding) -> dict[str, Any]:
    return {
        "resourceType": binding.pattern.resource_type.name,
        "name": binding.pattern.name,
        "patternType": binding.pattern.pattern_type.name,
        "principal": binding.entry.principal,
        "host": binding.entry.host,
        "operation": binding.entry.operation.name,
        "permissionType": binding.entry.permission_type.name,
    }


def filter_text(one: ResourcePatternFilter) -> str:
    """A filter is printed as the pattern that it looks for."""
    return f"ResourcePattern(resourceType={one.resource_type.name}, name={one.name}, patternType={one.pattern_type.name})"


def rules(options: Options) -> dict[ResourcePatternFilter, list[AccessControlEntry]]:
    """Which rules for which resources a command line means; no rules for a resource means all of its rules."""
    filters = resource_filters(options)
    if not filters:
        options.usage(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> "
            "or --delegation-token <Delegation Token ID>"
        )
    acls: dict[ResourcePatternFilter, list[AccessControlEntry]] = {}
    if not options.has("producer") and not options.has("consumer"):
        operations = [_operation(text) for text in options.texts("operation") or ["All"]]
        acls = {resource: _entries(options, operations) for resource in filters}
    if options.has("producer"):
        acls |= _for(options, filters, "TOPIC", _PRODUCER_ON_TOPIC)
        acls |= _for(options, filters, "TRANSACTIONAL_ID", _PRODUCER_ON_TRANSACTIONAL_ID)
        if options.has("idempotent"):
            acls[_cluster()] = _entries(options, [_operation("IdempotentWrite")])
    if options.has("consumer"):
        needed = _for(options, filters, "TOPIC", _CONSUMER_ON_TOPIC) | _for(options, filters, "GROUP", _CONSUMER_ON_GROUP)
        for resource, entries in needed.items():
            acls[resource] = list(dict.fromkeys([*entries, *acls.get(resource, ())]))
    for resource, entries in acls.items():
        valid = (*SUPPORTED[resource.resource_type.name], "ALL")
        if any(entry.operation.name not in valid for entry in entries):
            options.usage(f"ResourceType {resource.resource_type.name} only supports operations [{', '.join(valid)}]")
    return acls


def _for(
    options: Options, filters: Sequence[ResourcePatternFilter], kind: str, operations: Sequence[str]
) -> dict[ResourcePatternFilter, list[AccessControlEntry]]:
    entries = _entries(options, [_operation(name) for name in operations])
    return {resource: entries for resource in filters if resource.resource_type.name == kind}


def _entries(options: Options, operations: Sequence[AclOperation]) -> list[AccessControlEntry]:
    from barnabas.security.acl import AccessControlEntry, AclPermissionType

    entries = [
        AccessControlEntry(principal, host, operation, AclPermissionType[permission.upper()])
        for permission in ("allow", "deny")
        for principal in _principals(options, f"{permission}-principal")
        for operation in operations
        for host in [text.strip() for text in options.texts(f"{permission}-host")] or [_ANYWHERE]
    ]
    return list(dict.fromkeys(entries))


def resource_filters(options: Options) -> list[ResourcePatternFilter]:
    """The resources that a command line names."""
    from barnabas.security.acl import PatternType, ResourcePatternFilter, ResourceType

    pattern_type = _pattern_type(options)
    filters = []
    for option, kind in _RESOURCES.items():
        if option == "cluster":
            adds_cluster = options.has("cluster") or options.has("idempotent")
            filters += [_cluster()] if adds_cluster and pattern_type is PatternType.LITERAL else []
        else:
            filters += [ResourcePatternFilter(ResourceType[kind], name.strip(), pattern_type) for name in options.texts(option)]
    return list(dict.fromkeys(filters))


def _cluster() -> ResourcePatternFilter:
    from barnabas.security.acl import PatternType, ResourcePatternFilter, ResourceType

    return ResourcePatternFilter(ResourceType.CLUSTER, _CLUSTER_NAME, PatternType.LITERAL)


def _pattern_type(options: Options) -> Any:
    from barnabas.security.acl import PatternType

    text = options.text("resource-pattern-type")
    if text.upper() not in ("ANY", "MATCH", "LITERAL", "PREFIXED"):
        raise UsageError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return PatternType[text.upper()]


def _operation(text: str) -> AclOperation:
    """What a user calls it: DescribeConfigs in any case, and nothing else."""
    from barnabas.security.operations import AclOperation

    return AclOperation.UNKNOWN if "_" in text else AclOperation.from_string(text.strip())


def _principals(options: Options, name: str) -> list[str]:
    return list(dict.fromkeys(parse_principal(text.strip()) for text in options.texts(name)))


def parse_principal(text: str) -> str:
    """`type:name`, refused as Kafka refuses it."""
    if not text:
        raise BadArgument(f"expected a string in format principalType:principalName but got {text}")
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise BadArgument(f"expected a string in format principalType:principalName but got {text}")
    return text
