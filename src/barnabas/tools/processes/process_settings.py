"""The settings of each of several broker processes, made from those of one: node ids, ports, log directories, rack."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.metrics_listener import NO_AUTHENTICATION, MetricsListener
from barnabas.endpoint import EndPoint, host_and_port
from barnabas.layout.layout import FIRST_NODE, node_dir
from barnabas.storage.directory import names
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode

_PORT_MAX: Final = 65_535


def first_node_id(config: BrokerConfig, *, is_shared: bool) -> int:
    """The node id of the first process. Where the parent serves the metadata store, the ids are those of its layout, from 1 on."""
    if is_shared:
        if config.broker_id < 0:
            raise CannotRun(ExitCode.INVALID_CONFIG, "--processes needs broker.id, the id of the first process; the others have the next")
        return config.broker_id
    if config.broker_id not in (-1, FIRST_NODE):
        fix = f"set it to {FIRST_NODE}, or remove it; data of node {config.broker_id} alone becomes that of node {FIRST_NODE}"
        raise CannotRun(
            ExitCode.INVALID_CONFIG, f"broker.id={config.broker_id}: with --processes and without zookeeper.connect ids begin at 1: {fix}"
        )
    return FIRST_NODE


def process_properties(config: BrokerConfig, number: int, first_id: int) -> dict[str, str]:
    """The properties of process `number`, from 1 on. Each process has a directory in each of log.dirs."""
    offset = number - 1
    node_id = str(first_id + offset)
    own = {
        "broker.id": node_id,
        "node.id": node_id,
        "log.dirs": ",".join(f"{log_dir}/{node_dir(number)}" for log_dir in config.log_dirs),
        "broker.rack": config.text("broker.rack") or socket.gethostname(),
        "listeners": _shifted(config.listeners, offset),
    }
    if config["advertised.listeners"] is not None:
        own["advertised.listeners"] = _shifted(config.advertised_listeners, offset)
    metrics = config.text("metrics.listener")
    if metrics:
        listener = MetricsListener.parse(metrics)
        offset += machine_listener(config) is not None
        own["metrics.listener"] = f"{listener.scheme}://{host_and_port(listener.host, _port(listener.port, offset, 'metrics.listener'))}"
    return {name: value for name, value in config.properties.items() if name != "log.dir"} | own


def machine_listener(config: BrokerConfig) -> MetricsListener | None:
    """The listener for the health of all processes together: the port of metrics.listener, if it is open to everybody who connects. With
    TLS or users there is none."""
    text = config.text("metrics.listener")
    listener = MetricsListener.parse(text) if text else None
    is_open = config.text("metrics.listener.authentication") in (None, "", NO_AUTHENTICATION)
    return listener if listener is not None and is_open and not listener.uses_tls else None


def check_ports(configs: Sequence[BrokerConfig]) -> None:
    """Raises CannotRun if two processes, or two listeners of different ones, would have the same port."""
    owners: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for config in configs:
        ports = {listener.listener_name: listener.port for listener in config.broker_listeners}
        metrics = config.text("metrics.listener")
        if metrics:
            ports["metrics.listener"] = MetricsListener.parse(metrics).port
        for name, port in ports.items():
            if port:
                owners[port].setdefault(config.broker_id, name)
    for port, nodes in owners.items():
        if len(nodes) > 1:
            users = " and ".join(f"{name} of node {node}" for node, name in nodes.items())
            raise CannotRun(ExitCode.INVALID_CONFIG, f"port {port} would be that of {users}: leave {len(configs)} ports to each listener")


def check_directories(config: BrokerConfig) -> None:
    """Raises CannotRun for a log directory whose name is that of a process: a start below it would be one too many."""
    for log_dir in config.log_dirs:
        name = log_dir.rstrip("/").rpartition("/")[2]
        if names.NODE_DIR.fullmatch(name):
            raise CannotRun(
                ExitCode.INVALID_CONFIG, f"log.dirs={log_dir} is the directory of one process: name the directory that it is in"
            )


def _shifted(endpoints: Sequence[EndPoint], offset: int) -> str:
    return ",".join(f"{one.listener_name}://{host_and_port(one.host, _port(one.port, offset, one.listener_name))}" for one in endpoints)


def _port(port: int, offset: int, name: str) -> int:
    """Port 0 is any that is free, for each process."""
    if port and port + offset > _PORT_MAX:
        raise CannotRun(ExitCode.INVALID_CONFIG, f"{name}: there are no {offset} ports above {port}; choose a lower one")
    return port + offset if port else 0
