"""List, describe and delete consumer groups, and reset or delete their offsets, as kafka-consumer-groups does.

Options, messages, output and exit codes are those of Apache Kafka 4.2: an error that a cluster answers is printed and the code stays 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import InvalidRegularExpression, KafkaError
from barnabas.tools.administration import group_offsets, group_text
from barnabas.tools.command_line.failures import (
    BadArgument,
    described,
    execution,
    failed_with_message,
    finish,
    message_of,
    print_cause,
    sending_to_all,
    wrapped_execution,
)
from barnabas.tools.command_line.options import Option, Options, ShowUsage
from barnabas.tools.command_line.text import JSON, print_json
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets."
)
PATIENCE_OPTION: Final = "--timeout"  # how long the tool waits for the first broker
OPTIONS: Final = (
    Option(
        "bootstrap-server", "REQUIRED, but for --validate-regex: the broker to connect to.", "required", described_as="server to connect to"
    ),
    Option("group", "The group; may be repeated with --describe, --delete and --reset-offsets.", "required", described_as="consumer group"),
    Option(
        "topic", "A topic whose offsets are reset or deleted, or topic1:0,1,2 for some of its partitions.", "required", described_as="topic"
    ),
    Option("all-topics", "With --reset-offsets: all topics for which the group has offsets."),
    Option("list", "List the consumer groups."),
    Option("describe", "Show the offsets and the lag of groups, or their members or state."),
    Option("all-groups", "All consumer groups."),
    Option("delete", "Delete groups with their offsets, as in --group g1 --group g2."),
    Option("timeout", "How long to wait for an answer of the cluster.", "required", "Long", "timeout (ms)", "30000"),
    Option("command-config", "A properties file for the admin client.", "required", described_as="command config property file"),
    Option(
        "reset-offsets",
        "Reset the offsets of groups that have no members: --dry-run (the default) shows what --execute does, --export prints it as CSV. "
        "Where to: --to-datetime, --by-duration, --to-earliest, --to-latest, --shift-by, --from-file, --to-current, --to-offset. "
        "Which: --all-topics or --topic, unless it is --from-file.",
    ),
    Option("delete-offsets", "Delete the offsets of a group for some topics."),
    Option("dry-run", "With --reset-offsets: only show."),
    Option("execute", "With --reset-offsets: do it."),
    Option("export", "With --reset-offsets: print as CSV."),
    Option("to-offset", "Reset to this offset.", "required", "Long", "offset"),
    Option("from-file", "Reset to the offsets in a CSV file.", "required", described_as="path to CSV file"),
    Option("to-datetime", "Reset to the first record of a time, as YYYY-MM-DDThh:mm:ss.sss.", "required", described_as="datetime"),
    Option("by-duration", "Reset to so long ago, as PnDTnHnMnS.", "required", described_as="duration"),
    Option("to-earliest", "Reset to the beginning."),
    Option("to-latest", "Reset to the end."),
    Option("to-current", "Reset to the offset that is committed."),
    Option("shift-by", "Reset by so many offsets, back if negative.", "required", "Long", "number-of-offsets"),
    Option("members", "With --describe: the members.", available_if=("describe",)),
    Option("verbose", "With --describe: more columns.", available_if=("describe",)),
    Option("offsets", "With --describe: the offsets, which is the default.", available_if=("describe",)),
    Option(
        "state",
        "With --describe: the state; with --list: states too, or only groups in these.",
        "optional",
        available_if=("describe", "list"),
    ),
    Option("type", "With --list: types too, or only groups of these (classic, consumer).", "optional", available_if=("list",)),
    Option("validate-regex", "Check a regular expression for topics.", "required", described_as="regex"),
    JSON,
)
ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS: Final = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "shift-by", "from-file")
_STATES: Final = {
    name.upper(): name for name in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
}
_TYPES: Final = {"classic": "Classic", "consumer": "Consumer"}


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    _check(options)
    if sum(map(options.has, ACTIONS)) != 1:
        options.usage(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}")
    if options.has("validate-regex"):
        _validate_regex(options.text("validate-regex"))
        return
    try:
        timeout_ms = options.integer("timeout")
        with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
            _run(admin, options, timeout_ms)
    except BadArgument as error:
        options.usage(str(error))
    except ShowUsage:
        raise
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"\nError: Executing consumer group command failed due to {message_of(error)}")
        print_cause(error)


def _run(admin: Admin, options: Options, timeout_ms: int) -> None:
    if options.has("list"):
        _list(admin, options, timeout_ms)
    elif options.has("describe"):
        _describe(admin, options, timeout_ms)
    elif options.has("delete"):
        _delete(admin, options, timeout_ms)
    elif options.has("reset-offsets"):
        groups = group_ids(admin, options, timeout_ms)
        plan = group_offsets.Resets(admin, options, timeout_ms).of_groups(groups)
        if options.has("json"):
            print_json({group: {str(partition): offset for partition, offset in offsets.items()} for group, offsets in plan.items()})
        elif options.has("export"):
            print(group_offsets.as_csv(plan, with_group=len(options.texts("group")) != 1))
        else:
            group_text.print_new_offsets(plan)
    else:
        group_offsets.delete_offsets(admin, options, timeout_ms)


def _check(options: Options) -> None:
    options.maybe_help_or_version(ABOUT)
    if not options.has("validate-regex"):
        options.require("bootstrap-server")
    named = options.has("group") or options.has("all-groups")
    if options.has("describe"):
        if not named:
            options.usage("Option [describe] takes one of these options: [group], [all-groups]")
        if sum(map(options.has, ("members", "offsets", "state"))) > 1:
            options.usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if options.optional("state") is not None:
            options.usage("Option [describe] does not take a value for [state]")
    if options.has("delete"):
        if not named:
            options.usage("Option [delete] takes one of these options: [group], [all-groups]")
        if options.has("topic"):
            options.usage("The consumer does not support topic-specific offset deletion from a consumer group.")
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        options.usage("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.has("reset-offsets"):
        _check_reset(options, named)
    options.refuse_with("group", ("all-groups",))
    options.refuse_with("group", ("list",))
    options.refuse_with("topic", ("list", "describe"))


def _check_reset(options: Options, named: bool) -> None:
    if options.has("dry-run") and options.has("execute"):
        options.usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.has("dry-run") and not options.has("execute"):
        print(
            "WARN: No action will be performed as the --execute option is missing. "
            "In version 5.0, this command will require either --dry-run or --execute to be specified. "
            "You should add the --dry-run option explicitly if you are scripting this command and want to "
            "keep the current default behavior without prompting.",
            file=sys.stderr,
        )
    if not named:
        options.usage("Option [reset-offsets] takes one of these options: [group], [all-groups]")
    for scenario in SCENARIOS:
        options.refuse_with(scenario, (other for other in SCENARIOS if other != scenario))


def _validate_regex(regex: str) -> None:
    from barnabas.coordinator.group.consumer.subscription import validate_regex

    try:
        validate_regex(regex)
    except InvalidRegularExpression as error:
        reason = str(error).partition("is not a valid regular expression: ")[2]
        print(f"The regular expression `{regex}` is invalid: {reason}")
    else:
        print(f"The regular expression `{regex}` is valid.")


def group_ids(admin: Admin, options: Options, timeout_ms: int) -> list[str]:
    """The groups named on the command line, or all consumer groups."""
    if not options.has("all-groups"):
        return options.texts("group")
    with wrapped_execution(), sending_to_all("ListGroups"):
        return [group.group_id for group in admin.list_consumer_groups(timeout_ms=timeout_ms)]


def _list(admin: Admin, options: Options, timeout_ms: int) -> None:
    with_type, with_state = options.has("type"), options.has("state")
    types, states = _types(options.optional("type")), _states(options.optional("state"))
    with execution() if with_type or with_state else wrapped_execution(), sending_to_all("ListGroups"):
        groups = admin.list_consumer_groups(group_states=states, types=types, timeout_ms=timeout_ms).all()
    groups = sorted(groups, key=lambda group: group.group_id)
    if options.has("json"):
        print_json([{"group": group.group_id, "type": _name(group.type), "state": _name(group.group_state)} for group in groups])
    elif with_type or with_state:
        group_text.print_groups([(group.group_id, _name(group.type), _name(group.group_state)) for group in groups], with_type, with_state)
    else:
        for group in groups:
            print(group.group_id)


def _name(value: Any) -> str:
    return "Unknown" if value is None else str(value)


def _states(text: str | None) -> set[Any]:
    from barnabas.client.admin.groups.group_descriptions import GroupState

    if not text:
        return set()
    names = [part.strip().upper() for part in text.split(",")]
    if any(name not in _STATES for name in names):
        raise BadArgument(f"Invalid state list '{text}'. Valid states are: {', '.join(_STATES.values())}")
    return {GroupState.parse(name) for name in names}


def _types(text: str | None) -> set[Any]:
    from barnabas.client.admin.groups.group_descriptions import GroupType

    if not text:
        return set()
    names = [part.strip().lower() for part in text.split(",")]
    if any(name not in _TYPES for name in names):
        raise BadArgument(f"Invalid types list '{text}'. Valid types are: {', '.join(_TYPES.values())}")
    return {GroupType.parse(name) for name in names}


def _describe(admin: Admin, options: Options, timeout_ms: int) -> None:
    groups = group_ids(admin, options, timeout_ms)
    with execution():
        descriptions = dict(sorted(admin.describe_consumer_groups(groups, timeout_ms=timeout_ms).all().items())) if groups else {}
    verbose = options.has("verbose")
    if options.has("members"):
        rows = {group: group_text.member_rows(description) for group, description in descriptions.items()}
        if options.has("json"):
            print_json(rows)
            return
        for group, description in descriptions.items():
            group_text.print_members(group, str(description.group_state), rows[group], verbose)
    elif options.has("state"):
        states = {group: group_text.state_row(group, description) for group, description in descriptions.items()}
        if options.has("json"):
            print_json(states)
            return
        for group, row in states.items():
            group_text.print_state(group, row, verbose)
    else:
        collected = {group: group_offsets.offset_rows(admin, group, description, timeout_ms) for group, description in descriptions.items()}
        if options.has("json"):
            print_json(collected)
            return
        for group, description in descriptions.items():
            group_text.print_offsets(group, str(description.group_state), collected[group], verbose)


def _delete(admin: Admin, options: Options, timeout_ms: int) -> None:
    groups = group_ids(admin, options, timeout_ms)
    outcomes = admin.delete_consumer_groups(groups, timeout_ms=timeout_ms)
    deleted = ", ".join(f"'{group}'" for group in outcomes.successes)
    failed: dict[str, KafkaError] = outcomes.errors
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group, error in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {described(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")
