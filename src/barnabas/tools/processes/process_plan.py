"""What the parent starts: the settings of each process, the directories, and the metadata store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.metrics_listener import MetricsListener
from barnabas.layout.layout import Layout
from barnabas.metadata.embedded import STORE_NAME
from barnabas.security.new_user import NewUser
from barnabas.tools.processes.process_settings import check_ports, first_node_id, machine_listener, process_properties

SOCKET_NAME: Final = "metadata.sock"  # of the metadata store that the parent serves


@dataclass(frozen=True)
class ProcessPlan:
    """`configs` are those of the processes, from number 1 on. `roots` are the directories that have theirs. `layout` is recorded where the
    data can be converted to another number. `store` is the file of the embedded metadata store; None with zookeeper.connect."""

    configs: Sequence[BrokerConfig]
    roots: Sequence[str]
    layout: Layout | None
    store: str | None
    log_level: str
    log_format: str
    log_directory: str | None = None
    new_users: Sequence[NewUser] = field(default=(), repr=False)  # made by the first process
    listener: MetricsListener | None = None  # for the health of all together


def is_shared(config: BrokerConfig) -> bool:
    """Whether the brokers have their metadata in ZooKeeper, and not in the store of the parent."""
    return bool((config.text("zookeeper.connect") or "").strip())


def store_path(config: BrokerConfig) -> str | None:
    """The embedded store of a single broker with these settings, and of several processes with them."""
    if is_shared(config):
        return None
    return f"{config.text('metadata.log.dir') or config.log_dirs[0]}/{STORE_NAME}"


def process_plan(
    config: BrokerConfig,
    processes: int,
    layout: Layout | None,
    log_level: str,
    log_format: str,
    log_directory: str | None,
    new_users: Sequence[NewUser],
) -> ProcessPlan:
    """Made from the settings of `barnabas server`. Raises CannotRun or InvalidConfig."""
    first_id = first_node_id(config, is_shared=is_shared(config))
    configs = [BrokerConfig.from_properties(process_properties(config, number, first_id)) for number in range(1, processes + 1)]
    check_ports(configs)
    return ProcessPlan(
        configs, config.log_dirs, layout, store_path(config), log_level, log_format, log_directory, new_users, machine_listener(config)
    )
