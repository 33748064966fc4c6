"""Show a cluster's id and endpoints, or unregister a broker, as kafka-cluster does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.protocol.errors import UnsupportedVersion
from barnabas.tools.command_line.arguments import Parser, failed, number
from barnabas.tools.command_line.failures import BadArgument, execution, finish, message_of
from barnabas.tools.command_line.text import coloured, heading, print_json
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.cluster import Node

_HOST_WIDTH: Final = 100
_RACK_WIDTH: Final = 10


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed)


def build_parser() -> Parser:
    parser = Parser(prog="kafka-cluster", description="The Kafka cluster tool.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{cluster-id,unregister,list-endpoints}")
    cluster_id = commands.add_parser("cluster-id", help="show the id of the cluster")
    unregister = commands.add_parser("unregister", help="unregister a broker that is gone for good")
    endpoints = commands.add_parser("list-endpoints", help="list the endpoints of brokers or controllers")
    for command in (cluster_id, unregister, endpoints):
        connection = command.add_mutually_exclusive_group(required=True)
        connection.add_argument("--bootstrap-server", "-b", metavar="HOST:PORT", help="brokers to connect to, with commas between them")
        connection.add_argument(
            "--bootstrap-controller", "-C", metavar="HOST:PORT", help="controllers to connect to, with commas between them"
        )
        command.add_argument("--config", metavar="FILE", help="(DEPRECATED) the same as --command-config")
        command.add_argument("--command-config", "-c", metavar="FILE", help="a properties file for the admin client")
    unregister.add_argument("--id", "-i", type=number("Integer"), required=True, help="the broker to unregister")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="list brokers that are fenced, too")
    parser.add_json()
    return parser


def _execute(arguments: Sequence[str]) -> None:
    parser = build_parser()
    given = parser.parse(list(arguments))
    if given.config is not None and given.command_config is not None:
        raise BadArgument("--config and --command-config cannot be specified together.")
    if given.config is not None:
        notice = "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        print(notice, file=sys.stderr if given.json else None)
    controllers = given.bootstrap_controller
    with open_admin(given.bootstrap_server, given.config or given.command_config, bootstrap_controllers=controllers) as admin, execution():
        _COMMANDS[given.command](admin, given)


def _cluster_id(admin: Admin, given: Any) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    if given.json:
        print_json({"clusterId": cluster_id})
        return
    print(f"Cluster ID: {cluster_id}" if cluster_id is not None else "No cluster ID found. The Kafka version is probably too old.")


def _unregister(admin: Admin, given: Any) -> None:
    try:
        admin.unregister_broker(given.id)
    except UnsupportedVersion:
        print("The target cluster does not support the broker unregistration API.")
    else:
        print(f"Broker {given.id} is no longer registered.")


def _list_endpoints(admin: Admin, given: Any) -> None:
    controllers = given.bootstrap_controller is not None
    if given.include_fenced_brokers and controllers:
        raise BadArgument("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    try:
        nodes = admin.describe_cluster(include_fenced_brokers=given.include_fenced_brokers).nodes
    except UnsupportedVersion as error:
        print(message_of(error))
        return
    if given.json:
        print_json([_as_json(node, controllers) for node in nodes])
        return
    host = max((len(node.host) for node in nodes), default=_HOST_WIDTH)
    rack = max((len(node.rack) for node in nodes if node.rack is not None), default=_RACK_WIDTH)
    columns = ["ID", "HOST", "PORT", "RACK", *([] if controllers else ["STATE"]), "ENDPOINT_TYPE"]
    widths = [10, host, 10, rack, *([] if controllers else [10]), 15]
    print(heading(" ".join(f"{name:{width}}" for name, width in zip(columns, widths, strict=True))))
    for node in nodes:
        state = [] if controllers else ["fenced" if node.is_fenced else "unfenced"]
        cells = [str(node.id), node.host, str(node.port), node.rack or "null", *state, "controller" if controllers else "broker"]
        line = " ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        print(coloured(line, "yellow") if node.is_fenced else line)


def _as_json(node: Node, controller: bool) -> dict[str, Any]:
    known = {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
    return known | ({"type": "controller"} if controller else {"type": "broker", "fenced": node.is_fenced})


_COMMANDS: Final = {"cluster-id": _cluster_id, "unregister": _unregister, "list-endpoints": _list_endpoints}
