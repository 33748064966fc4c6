"""Spread replicas and leaders evenly over the brokers, by disk and traffic. (Not in Kafka.)

`--plan` shows what would move, `--apply` moves it. Both use only requests that any admin client may send, so that they work with Apache
Kafka too. A run that was interrupted is continued by the next one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from barnabas.tools.balancing.cluster_load import ClusterLoad
from barnabas.tools.balancing.moving import INTERRUPTED, INTERRUPTED_CODE, SAMPLE_S, TIMEOUT_S, Mover
from barnabas.tools.balancing.plan import Plan
from barnabas.tools.balancing.plan_text import counted, plan_json, plan_screen
from barnabas.tools.balancing.throttles import RATE_DEFAULT, parse_rate, rate_for
from barnabas.tools.command_line.failures import ToolError, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON, print_json
from barnabas.tools.connecting.connect import bootstrap_option, command_config_option, open_admin
from barnabas.tools.connecting.reachable import quiet_clients

ABOUT: Final = "Spreads replicas and leaders evenly over the brokers."
OPTIONS: Final = (
    Option("plan", "Show what would move; nothing is changed."),
    Option("apply", "Move it, show the progress, and elect preferred leaders. Continues what an earlier run has begun."),
    Option("cancel", "Cancel all reassignments that are under way, and remove their throttles."),
    bootstrap_option(),
    command_config_option(),
    Option(
        "throttle",
        "The limit for copies on each broker, in bytes a second. "
        f"(default: {RATE_DEFAULT}, or twice the traffic of the replicas that move)",
        "required",
        "Long",
        "bytes a second",
    ),
    Option("sample-seconds", "How long to measure traffic; 0 leaves it out.", "required", "Integer", "seconds", str(SAMPLE_S)),
    Option("timeout", "How long a broker that gets replicas may be away.", "required", "Integer", "seconds", str(TIMEOUT_S)),
    JSON,
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    options.one_of("plan", "apply", "cancel")
    for action in ("apply", "cancel"):
        options.refuse_with(action, ("json",))
    rate = parse_rate(options.text("throttle")) if options.has("throttle") else None
    sample_s, timeout_s = _seconds(options, "sample-seconds", 0), _seconds(options, "timeout", 1)
    with quiet_clients(), open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
        mover = Mover(admin, timeout_s)
        if options.has("cancel"):
            print(f"Cancelled {counted(mover.cancel(), 'reassignment')} and removed the throttles.")
            return 0
        if options.has("plan"):
            _show(mover, options, rate, sample_s)
            return 0
        try:
            _apply(mover, rate, sample_s)
        except KeyboardInterrupt:
            print(f"\n{INTERRUPTED}", file=sys.stderr)
            return INTERRUPTED_CODE
    return 0


def _seconds(options: Options, name: str, least: int) -> int:
    value = options.integer(name)
    if value < least:
        raise ToolError(f"--{name} takes a number of seconds, at least {least}, not {value}")
    return value


def _show(mover: Mover, options: Options, rate: int | None, sample_s: int) -> None:
    under_way = mover.in_progress()
    if under_way:
        raise ToolError(
            f"{counted(len(under_way), 'partition')} still move: plan again when `barnabas balance --apply` has followed them to their end"
        )
    plan = _plan_of(mover.look(sample_s))
    if options.has("json"):
        print_json({**plan_json(plan), "throttle": rate_for(plan, rate)})
        return
    print(plan_screen(plan))
    if plan.moves:
        print(f"Nothing was changed. `barnabas balance --apply` moves it, with a throttle of {rate_for(plan, rate)} bytes a second.")


def _apply(mover: Mover, rate: int | None, sample_s: int) -> None:
    mover.resume()
    plan = _plan_of(mover.look(sample_s))
    limit = rate_for(plan, rate)
    print(plan_screen(plan), flush=True)
    if plan.moves:
        mover.apply(plan, limit)
    mover.end()


def _plan_of(load: ClusterLoad) -> Plan:
    from barnabas.tools.balancing.balance_planner import BalancePlanner

    alive = set(load.ids)
    missing = {broker: one.partition for one in reversed(load.partitions) for broker in one.replicas if broker not in alive}
    if missing:
        broker, partition = min(missing.items())
        raise ToolError(
            f"broker {broker} is not alive and has replicas, such as that of {partition}: start it, or give its replicas to others with "
            f"`barnabas drain {broker}`; nothing was changed"
        )
    return BalancePlanner(load).plan()
