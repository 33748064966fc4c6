"""Run a broker on this machine, ready for clients on it, with nothing to set up.

For a laptop and for tests: one node, one listener, data in the user's data directory, and replication factors that one node can keep. With
`--processes N` it has a process for each of N brokers, to use all cores; with `--brokers N` it is a cluster of N brokers in one process.
"""

from __future__ import annotations

import os
import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Sequence
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from barnabas.endpoint import SecurityProtocol, host_and_port
from barnabas.layout.layout import FIRST_NODE, Layout
from barnabas.layout.layout_file import find_layout
from barnabas.storage.directory.log_dir import SECURE_DIR
from barnabas.storage.directory.meta_properties import MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.processes.process_count import add_process_option
from barnabas.tools.running.broker_count import broker_count
from barnabas.tools.running.console_child import ConsoleChild, add_console_options, console_options, port_number
from barnabas.tools.running.data_home import data_home, refuse_other_layout
from barnabas.tools.running.overrides import Overrides, read_overrides
from barnabas.tools.running.run import Serve, no_usage, run, serve
from barnabas.tools.running.run_options import add_run_options
from barnabas.tools.running.secured import Secured, is_secured, prepare
from barnabas.tools.running.settings import Settings, settings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

METRICS_PORT: Final = 9404  # as that of jmx_exporter in Strimzi; of several brokers each has the next
# As in Kafka's example for a single node: the defaults need three nodes.
_ONE_NODE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
# Of several brokers in one process. They stop together: no other broker can take over leadership.
_ONE_PROCESS: Final = {"controlled.shutdown.enable": "false"}

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
    parser = build_parser()
    given = parser.parse_args(arguments)
    overridden: set[str] = set()

    @cache  # read once for all brokers: the file may be a pipe
    def overrides() -> Overrides:
        read = read_overrides(given)
        overridden.update(read.properties)
        return read

    if given.processes is not None and given.brokers > 1:
        parser.error("--processes and --brokers are both several brokers: give one of them")
    if given.processes is not None and given.processes > 1:
        serve_with = _processes(given, overrides)
    else:
        serve_with = _several(given, overrides) if given.brokers > 1 else _one(given)

    def make_settings() -> Settings:
        if given.processes is not None:
            _fit(given, arguments, overrides())
        return _settings(given, overrides())

    return run(
        make_settings,
        given.log_level,
        given.log_format,
        serve_with,
        lambda text: in_options(text, overridden),
        given.logs,
    )


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas up", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--port", type=port_number, default=9092, help="0 takes any that is free; default: %(default)s")
    parser.add_argument("--host", default="localhost", help="the name or address to listen on, IPv6 too; default: %(default)s")
    parser.add_argument("--data", metavar="DIR", default=None, help=f"default: {data_home()}")
    parser.add_argument(
        "--brokers",
        type=broker_count,
        default=1,
        metavar="N",
        help="a cluster of so many in one process, for tests: on ports from --port on",
    )
    add_process_option(parser)
    parser.add_argument(
        "--secure",
        action="store_true",
        help="TLS, passwords and access lists: makes certificates and the user admin, in the directory secure of the data",
    )
    parser.add_argument(
        "--no-console", action="store_true", help="no web page; with --port 0 there is none unless --console-port names one"
    )
    add_console_options(parser)
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

    async def serve_all(first: BrokerConfig, log_format: str) -> int:
        from barnabas.tools.running.run_many import serve_many

        data = os.path.dirname(first.log_dirs[0])
        configs = [first, *(_settings(given, overrides(), number).config for number in range(2, given.brokers + 1))]
        if not given.secure:
            return await serve_many(configs, data, log_format, console=_console(given))
        secured = _secured(given)
        return await serve_many(configs, data, log_format, secured.new_users, secured.usage, _console(given))

    return serve_all


def _processes(given: Namespace, overrides: Callable[[], Overrides]) -> Serve:
    """As `_several`, with a process for each broker. The parent has the metadata store."""

    async def serve_all(first: BrokerConfig, log_format: str) -> int:
        from barnabas.broker.config.metrics_listener import MetricsListener
        from barnabas.metadata.embedded import STORE_NAME
        from barnabas.tools.processes.parent import serve_processes
        from barnabas.tools.processes.process_plan import ProcessPlan
        from barnabas.tools.processes.process_settings import check_ports

        data = os.path.dirname(first.log_dirs[0])
        configs = [first, *(_settings(given, overrides(), number).config for number in range(2, given.processes + 1))]
        check_ports(configs)
        secured = _secured(given) if given.secure else None
        plan = ProcessPlan(
            configs,
            (data,),
            _layout(given, data),
            f"{data}/{STORE_NAME}",
            given.log_level,
            log_format,
            given.logs,
            () if secured is None else secured.new_users,
            MetricsListener("localhost", METRICS_PORT) if secured is None and given.port else None,
        )
        return await serve_processes(plan, no_usage if secured is None else secured.usage, _console(given))

    return serve_all


def _layout(given: Namespace, data: str) -> Layout:
    if given.processes is None:
        return Layout(given.brokers)
    from barnabas.tools.processes.resizing import process_layout

    return process_layout(data, given.processes)


def _fit(given: Namespace, arguments: Sequence[str], overrides: Overrides) -> None:
    """Converts data of another number of brokers to that of --processes."""
    from barnabas.metadata.embedded import STORE_NAME
    from barnabas.tools.processes.resizing import fit

    if "log.dirs" in overrides.properties:
        raise CannotRun(ExitCode.INVALID_CONFIG, "--processes makes a directory for each process: name the one around them by --data")
    data = _data(given)
    fit((data,), f"{data}/{STORE_NAME}", given.processes, FIRST_NODE, ["up", *arguments, "--no-console"])


def _one(given: Namespace) -> Serve:
    async def serve_one(config: BrokerConfig, log_format: str) -> int:
        if not given.secure:
            return await serve(config, log_format, console=_console(given))
        secured = _secured(given)
        return await serve(config, log_format, secured.new_users, secured.usage, _console(given))

    return serve_one


def _console(given: Namespace) -> ConsoleChild | None:
    """With port 0 there may be many brokers, so only a port that is named has a console."""
    if given.no_console:
        return None
    options = console_options(given, given.port != 0, str(_secured(given).console_properties) if given.secure else None)
    return None if options is None else ConsoleChild(options)


def _secured(given: Namespace) -> Secured:
    return _prepared(_data(given), _host(given))


@cache  # a second call would not know that the passwords are new
def _prepared(data: str, host: str) -> Secured:
    return prepare(data, [host])


def _settings(given: Namespace, overrides: Overrides, number: int = 1) -> Settings:
    data = _data(given)
    if "," in data:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"--data {data}: log.dirs is a list with commas, so a directory's name cannot have one")
    if "log.dirs" not in overrides.properties:
        refuse_other_layout(data, _layout(given, data))
    remarks = overrides.remarks
    if given.secure:
        if number == 1 and not is_secured(data) and find_layout(Files(), data) is not None:
            remarks = (*remarks, f"The data in {data} was open until now: from here on only users with a password and ACLs reach it")
    elif is_secured(data):
        raise CannotRun(
            ExitCode.INVALID_CONFIG,
            f"the data in {data} is secured: start it with --secure, or remove {data}/{SECURE_DIR} to open it to everybody on this machine",
        )
    layout = _layout(given, data)
    own = _single(given, overrides, data) if layout.is_single else _one_of_several(given, layout, number, data)
    made = settings({**_ONE_NODE, **own, **overrides.properties}, remarks)
    if given.secure:
        _require_secured(made.config)
    return made


def _single(given: Namespace, overrides: Overrides, data: str) -> dict[str, str]:
    own = {"log.dirs": data, **_listener(given, given.port, 1)}
    if "broker.id" not in overrides.properties and "node.id" not in overrides.properties:
        own["broker.id"] = _node_id(data)
    return own


def _one_of_several(given: Namespace, layout: Layout, number: int, data: str) -> dict[str, str]:
    factor, in_sync = str(layout.replication_factor), str(layout.min_in_sync)
    return {
        "log.dirs": f"{data}/{layout.node_dir(number)}",
        **_listener(given, given.port + number - 1 if given.port else 0, number),
        "broker.id": str(number),
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        **(_ONE_PROCESS if given.processes is None else {"broker.rack": socket.gethostname()}),
    }


def _listener(given: Namespace, port: int, number: int) -> dict[str, str]:
    host, protocol = _host(given), "SASL_SSL" if given.secure else "PLAINTEXT"
    own = {"listeners": f"{protocol}://{host_and_port(host, port)}"}
    if _is_every_address(host):  # clients cannot connect to a wildcard address: advertise the name of this machine
        own["advertised.listeners"] = f"{protocol}://{host_and_port(socket.gethostname(), port)}"
    if port:  # with port 0 there may be many brokers
        # The health of several processes together has the first port, unless it is secured.
        offset = number - (given.processes in (None, 1) or given.secure)
        own["metrics.listener"] = f"{'https' if given.secure else 'http'}://localhost:{METRICS_PORT + offset}"
        if given.secure:
            own["metrics.listener.authentication"] = "basic"
    return own | (_secured(given).broker_settings if given.secure else {})


def _require_secured(config: BrokerConfig) -> None:
    """An --override may have other listeners."""
    for endpoint in config.broker_listeners:
        if endpoint.security_protocol is not SecurityProtocol.SASL_SSL:
            raise CannotRun(ExitCode.INVALID_CONFIG, f"the listener {endpoint} is not secured: use SASL_SSL, or start without --secure")


def _data(given: Namespace) -> str:
    return os.path.abspath(os.path.expanduser(given.data or data_home()))


def _host(given: Namespace) -> str:
    return str(given.host).removeprefix("[").removesuffix("]")


def _node_id(data: str) -> str:
    """The node id in meta.properties; the first node's id for a new directory."""
    stored = MetaPropertiesFile(Files(), data).read()
    return str(stored.node_id if stored is not None and stored.node_id is not None else FIRST_NODE)


def _is_every_address(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host
