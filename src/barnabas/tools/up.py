"""Run a broker on this machine, ready for clients on it, with nothing to set up.

For a laptop and for tests: one node, one listener, data in the user's data directory, and replication factors that one node can keep. With
`--brokers N` it is a cluster of N brokers in one process.
"""

from __future__ import annotations

import os
import socket
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Sequence
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from barnabas.endpoint import host_and_port
from barnabas.layout.layout import FIRST_NODE, Layout
from barnabas.storage.directory.meta_properties import MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running.broker_count import broker_count
from barnabas.tools.running.data_home import data_home, refuse_other_layout
from barnabas.tools.running.overrides import Overrides, read_overrides
from barnabas.tools.running.run import Serve, run
from barnabas.tools.running.run_options import add_run_options
from barnabas.tools.running.settings import Settings, settings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

PORT_MAX: Final = 65_535
# As in Kafka's example for a single node: the defaults need three nodes.
_ONE_NODE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}

# The names of settings in error texts, and the options of this command for them.
_OPTIONS: Final = {
    "log.dirs": {
        "another directory in log.dirs": "another directory with --data",
        "a directory on another disk in log.dirs": "a directory on another disk with --data",
        "this broker a directory of its own in log.dirs": "this one a directory of its own with --data",
    },
    "listeners": {
        "another port in listeners": "another port with --port",
        "correct it in listeners": "correct --host",
        "correct the host or port in listeners": "correct --host or --port",
    },
}


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    overridden: set[str] = set()

    @cache  # read once for all brokers: the file may be a pipe
    def overrides() -> Overrides:
        read = read_overrides(given)
        overridden.update(read.properties)
        return read

    serve = None if given.brokers == 1 else _several(given, overrides)
    return run(lambda: _settings(given, overrides()), given.log_level, given.log_format, serve, lambda text: in_options(text, overridden))


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas up", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--port", type=_port, default=9092, help="0 takes any that is free; default: %(default)s")
    parser.add_argument("--host", default="localhost", help="the name or address to listen on, IPv6 too; default: %(default)s")
    parser.add_argument("--data", metavar="DIR", default=None, help=f"default: {data_home()}")
    parser.add_argument("--brokers", type=broker_count, default=1, metavar="N", help="a cluster of so many, on ports from --port on")
    add_run_options(parser, log_level="warning")
    return parser


def in_options(text: str, overridden: Collection[str]) -> str:
    """Names the options of this command instead of the settings in an error; an overridden setting keeps its name."""
    for setting, phrases in _OPTIONS.items():
        for phrase, option in phrases.items() if setting not in overridden else ():
            text = text.replace(phrase, option)
    return text


def _several(given: Namespace, overrides: Callable[[], Overrides]) -> Serve:
    """Broker N has its logs in the directory broker-N, and the next port; one metadata store beside them serves all."""

    async def serve(first: BrokerConfig, log_format: str) -> int:
        from barnabas.tools.running.run_many import serve_many

        data = os.path.dirname(first.log_dirs[0])
        configs = [first, *(_settings(given, overrides(), number).config for number in range(2, given.brokers + 1))]
        return await serve_many(configs, data, log_format)

    return serve


def _settings(given: Namespace, overrides: Overrides, number: int = 1) -> Settings:
    host = given.host.removeprefix("[").removesuffix("]")
    data = os.path.abspath(os.path.expanduser(given.data or data_home()))
    if "," in data:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"--data {data}: log.dirs is a list with commas, so a directory's name cannot have one")
    if "log.dirs" not in overrides.properties:
        refuse_other_layout(data, Layout(given.brokers))
    if given.brokers > 1:
        return _one_of_several(given, overrides, number, host, data)
    own = {"log.dirs": data, "listeners": f"PLAINTEXT://{host_and_port(host, given.port)}"}
    if _is_every_address(host):  # clients cannot connect to a wildcard address: advertise the name of this machine
        own["advertised.listeners"] = f"PLAINTEXT://{host_and_port(socket.gethostname(), given.port)}"
    if "broker.id" not in overrides.properties and "node.id" not in overrides.properties:
        own["broker.id"] = _node_id(data)
    return settings({**_ONE_NODE, **own, **overrides.properties}, overrides.remarks)


def _one_of_several(given: Namespace, overrides: Overrides, number: int, host: str, data: str) -> Settings:
    layout = Layout(given.brokers)
    factor, in_sync = str(layout.replication_factor), str(layout.min_in_sync)
    port = given.port + number - 1 if given.port else 0
    own = {
        "log.dirs": f"{data}/{layout.node_dir(number)}",
        "listeners": f"PLAINTEXT://{host_and_port(host, port)}",
        "broker.id": str(number),
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        "controlled.shutdown.enable": "false",  # all brokers stop together: no other broker can take over leadership
    }
    if _is_every_address(host):
        own["advertised.listeners"] = f"PLAINTEXT://{host_and_port(socket.gethostname(), port)}"
    return settings({**_ONE_NODE, **own, **overrides.properties}, overrides.remarks)


def _node_id(data: str) -> str:
    """The node id in meta.properties; the first node's id for a new directory."""
    stored = MetaPropertiesFile(Files(), data).read()
    return str(stored.node_id if stored is not None and stored.node_id is not None else FIRST_NODE)


def _is_every_address(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise ArgumentTypeError(f"a port is a number from 0 to {PORT_MAX}, not {text}")
    return int(text)
