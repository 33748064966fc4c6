"""Move all replicas of a broker to the others, so that it can be stopped. (Not in Kafka.)

It sends only what any admin client may send, so that it works with Apache Kafka too. It does not cordon the broker, because that setting
would stay when the broker returns. The broker may be dead: its replicas are then copied from the leaders. A run that was interrupted is
continued by the next one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.balancing.cluster_load import ClusterLoad
from barnabas.tools.balancing.moving import INTERRUPTED, INTERRUPTED_CODE, SAMPLE_S, TIMEOUT_S, Mover
from barnabas.tools.balancing.plan_text import counted, plan_screen
from barnabas.tools.balancing.throttles import RATE_DEFAULT, parse_rate, rate_for
from barnabas.tools.command_line.arguments import Parser, failed, number
from barnabas.tools.command_line.failures import ToolError, finish
from barnabas.tools.connecting.connect import open_admin
from barnabas.tools.connecting.reachable import quiet_clients

if TYPE_CHECKING:
    from barnabas.tools.balancing.plan import Plan

RUNS_ALONE: Final = True  # `barnabas drain 3` has no option and means the default cluster
_ROUNDS_MAX: Final = 10  # a topic that is created meanwhile may have got replicas on the broker


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed)


def build_parser() -> Parser:
    parser = Parser(prog="barnabas drain", description="Moves all replicas of a broker to the others, so that it can be stopped.")
    parser.add_argument("broker", type=number("Integer"), metavar="BROKER", help="the id of the broker")
    parser.add_argument("--bootstrap-server", metavar="host:port", required=True, help="brokers to connect to, with commas between them")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file for the admin client")
    parser.add_argument("--plan", action="store_true", help="show what would move; nothing is changed")
    parser.add_argument(
        "--throttle",
        metavar="BYTES",
        help="the limit for copies on each broker, in bytes a second; "
        f"default: {RATE_DEFAULT}, or twice the traffic of the replicas that move",
    )
    parser.add_argument(
        "--sample-seconds", type=number("Integer"), default=SAMPLE_S, help="how long to measure traffic; default: %(default)s"
    )
    parser.add_argument(
        "--timeout",
        type=number("Integer"),
        default=TIMEOUT_S,
        help="how many seconds a broker that gets replicas may be away; default: %(default)s",
    )
    return parser


def _execute(arguments: Sequence[str]) -> int:
    given = build_parser().parse(list(arguments))
    rate = None if given.throttle is None else parse_rate(given.throttle)
    for name, value, least in (("sample-seconds", given.sample_seconds, 0), ("timeout", given.timeout, 1)):
        if value < least:
            raise ToolError(f"--{name} takes a number of seconds, at least {least}, not {value}")
    with quiet_clients(), open_admin(given.bootstrap_server, given.command_config) as admin:
        mover = Mover(admin, given.timeout)
        try:
            return _drain(mover, given, rate)
        except KeyboardInterrupt:
            print(f"\n{INTERRUPTED}", file=sys.stderr)
            return INTERRUPTED_CODE


def _drain(mover: Mover, given: Any, rate: int | None) -> int:
    _check_known(mover.look(0), given.broker)
    if not given.plan:
        mover.resume()
    elif mover.in_progress():
        raise ToolError("partitions still move: plan again when `barnabas balance --apply` has followed them to their end")
    for _ in range(_ROUNDS_MAX):
        plan = _plan_of(mover.look(given.sample_seconds), given.broker)
        if not plan.moves:
            break
        limit = rate_for(plan, rate)
        print(plan_screen(plan), flush=True)
        if given.plan:
            print(f"Nothing was changed. Without --plan it is moved, with a throttle of {limit} bytes a second.")
            return 0
        mover.apply(plan, limit)
    if given.plan:
        print(f"Broker {given.broker} has no replicas.")
        return 0
    mover.end(mover.touched)
    if plan.moves:
        raise ToolError(
            f"broker {given.broker} still gets {counted(plan.copies, 'replica')} of new topics: "
            f"set cordoned.log.dirs=* for it (barnabas configs --alter --entity-type brokers --entity-name {given.broker}), "
            "or stop creating topics, and run the command again"
        )
    print(f"Broker {given.broker} has no replicas: it can be stopped.")
    return 0


def _check_known(load: ClusterLoad, broker: int) -> None:
    known = {*load.ids, *(one for partition in load.partitions for one in partition.replicas)}
    if broker not in known:
        raise ToolError(f"there is no broker {broker}; the brokers are {', '.join(map(str, sorted(known)))}")


def _plan_of(load: ClusterLoad, broker: int) -> Plan:
    from barnabas.tools.balancing.drain_planner import CannotDrain, DrainPlanner

    try:
        return DrainPlanner(load, broker).plan()
    except CannotDrain as error:
        raise ToolError(f"{error}; nothing was changed") from None
