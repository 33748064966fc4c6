"""Set, delete, describe or list the subscriptions to metrics of clients, as kafka-client-metrics does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.command_line.failures import BadArgument, failed_with_message, finish, message_of, print_cause
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, heading, print_json
from barnabas.tools.connecting.connect import bootstrap_option, command_config_option, load_properties, open_admin
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.cluster.config_entries import ConfigResource

ABOUT: Final = "This tool helps to manipulate and describe client metrics configurations."
_SELECTORS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
OPTIONS: Final = (
    bootstrap_option(),
    command_config_option(),
    Option("alter", "Set a subscription, or some of it."),
    Option("delete", "Delete a subscription."),
    Option("describe", "Show one subscription, or all."),
    Option("list", "List the names of all subscriptions."),
    Option("name", "The name of the subscription.", "required", described_as="name"),
    Option("generate-name", "Take a random UUID for its name."),
    Option("interval", "How often clients push, in ms; empty to reset it.", "required", described_as="push interval"),
    Option(
        "match",
        "Which clients push, as 'k1=v1,k2=v2'. What can be asked for: \n" + "\n".join(f"\t{name}" for name in _SELECTORS),
        "required",
        described_as="k1=v1,k2=v2",
        separator=",",
    ),
    Option("metrics", "How the names of the metrics begin, as 'm1,m2'.", "required", described_as="m1,m2", separator=","),
    JSON,
)
_ACTIONS: Final = ("alter", "delete", "describe", "list")
_CHANGES: Final = ("generate-name", "interval", "match", "metrics")
_TIMEOUT_MS: Final = 30_000


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options.or_usage(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    _check(options)
    load_properties(options.optional("command-config"))
    run = {"alter": _alter, "delete": _delete, "describe": _describe, "list": _list}
    try:
        with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
            run[next(action for action in _ACTIONS if options.has(action))](admin, options)
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"Error while executing client metrics command : {message_of(error)}")
        print_cause(error)
        return 1
    return 0


def _check(options: Options) -> None:
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if not options.has("bootstrap-server"):
        raise BadArgument("--bootstrap-server must be specified.")
    options.refuse_with("delete", _CHANGES)
    options.refuse_with("describe", _CHANGES)
    options.refuse_with("list", ("name", *_CHANGES))
    if options.has("alter") and options.has("name") == options.has("generate-name"):
        raise BadArgument("One of --name or --generate-name must be specified with --alter.")
    if options.has("delete") and not options.has("name"):
        raise BadArgument("A client metrics resource name must be specified with --delete.")
    interval = options.optional("interval")
    if interval and not (re.fullmatch(r"[+-]?[0-9]{1,10}", interval) and -(2**31) <= int(interval) < 2**31):
        raise BadArgument("Invalid interval value. Enter an integer, or leave empty to reset.")


def _alter(admin: Admin, options: Options) -> None:
    name = str(Uuid.random(SystemRandom())) if options.has("generate-name") else options.text("name")
    settings = {
        "interval.ms": options.optional("interval"),
        "metrics": ",".join(options.texts("metrics")) if options.has("metrics") else None,
        "match": ",".join(options.texts("match")) if options.has("match") else None,
    }
    _change(admin, name, {key: value for key, value in settings.items() if value is not None})
    print(f"Altered client metrics config for {name}.")


def _delete(admin: Admin, options: Options) -> None:
    name = options.text("name")
    _change(admin, name, dict.fromkeys(_entries(admin, name), ""))
    print(f"Deleted client metrics config for {name}.")


def _describe(admin: Admin, options: Options) -> None:
    name = options.optional("name")
    names = _names(admin)
    if name is not None and name not in names and not options.has("json"):
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    entries_by_name = {resource: _entries(admin, resource) for resource in names if name in (None, resource)}
    if options.has("json"):
        print_json(entries_by_name)
        return
    for resource, entries in entries_by_name.items():
        print(heading(f"Client metrics configs for {resource} are:"))
        for key, value in entries.items():
            print(f"  {key}={value}")


def _list(admin: Admin, options: Options) -> None:
    names = _names(admin)
    if options.has("json"):
        print_json(names)
    else:
        print("\n".join(names))


def _names(admin: Admin) -> list[str]:
    return sorted(resource.name for resource in admin.list_client_metrics_resources(timeout_ms=_TIMEOUT_MS))


def _entries(admin: Admin, name: str) -> dict[str, Any]:
    """The settings of a subscription, by their names."""
    resource = _resource(name)
    described = admin.describe_configs([resource], timeout_ms=_TIMEOUT_MS).all()[resource]
    return {key: described[key].value for key in sorted(described)}


def _change(admin: Admin, name: str, settings: dict[str, str]) -> None:
    """Sets settings; the empty value removes one."""
    from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType

    changes = [AlterConfigOp(key, value, OpType.SET if value else OpType.DELETE) for key, value in settings.items()]
    admin.incremental_alter_configs({_resource(name): changes}, timeout_ms=_TIMEOUT_MS).all()


def _resource(name: str) -> ConfigResource:
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
