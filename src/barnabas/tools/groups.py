"""List the groups of all types, as kafka-groups does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.tools.command_line.failures import BadArgument, failed_with_message, finish, message_of, sending_to_all
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, heading, print_json
from barnabas.tools.connecting.connect import command_config_option, open_admin

ABOUT: Final = "This tool helps to list groups of all types."
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the broker to connect to.", "required", described_as="server to connect to", required=True),
    command_config_option(),
    Option("list", "List the groups."),
    Option("group-type", "Only groups of this type: classic, consumer, share or streams.", "required", described_as="type"),
    Option("protocol", "Only groups of this protocol type.", "required", described_as="protocol"),
    Option("consumer", "Only consumer groups, of type consumer or of type classic with the protocol type consumer or none."),
    Option("share", "Only share groups."),
    Option("streams", "Only streams groups."),
    JSON,
)
_TYPES: Final = {name.lower(): name for name in ("Classic", "Consumer", "Share", "Streams")}
_WIDTH_MIN: Final = 20


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options.or_usage(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    if not options.has("list"):
        options.usage("Command must include exactly one action: --list.")
    if options.has("group-type") and options.text("group-type").lower() not in _TYPES:
        raise BadArgument("--group-type must be a valid group type.")
    options.refuse_with("consumer", ("group-type", "protocol", "share", "streams"))
    options.refuse_with("share", ("consumer", "group-type", "protocol", "streams"))
    options.refuse_with("streams", ("consumer", "group-type", "protocol", "share"))
    try:
        with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
            with sending_to_all("ListGroups"):
                groups = sorted(admin.list_groups(), key=lambda group: group.group_id)
            _print([group for group in groups if _wanted(group, options)], options)
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"Error while executing groups command : {message_of(error)}")
        return 1
    return 0


def _wanted(group: Any, options: Options) -> bool:
    kind = "" if group.type is None else str(group.type)
    if options.has("group-type"):
        protocol = options.optional("protocol")
        return kind == _TYPES[options.text("group-type").lower()] and protocol in (None, group.protocol)
    if options.has("protocol"):
        return bool(group.protocol == options.text("protocol"))
    if options.has("consumer"):
        return group.protocol in ("consumer", "") or kind == "Consumer"
    if options.has("share"):
        return kind == "Share"
    return kind == "Streams" if options.has("streams") else True


def _print(groups: Sequence[Any], options: Options) -> None:
    rows = [(group.group_id, "" if group.type is None else str(group.type), group.protocol) for group in groups]
    if options.has("json"):
        print_json([{"group": name, "type": kind, "protocol": protocol} for name, kind, protocol in rows])
        return
    width = max([_WIDTH_MIN, *(len(cell) for row in rows for cell in row)])
    print(heading(f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}"))
    for row in rows:
        print("".join(f"{cell:{width}} " for cell in row))
