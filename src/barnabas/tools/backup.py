"""Take a consistent copy of running brokers on this machine: segments, metadata store, and the tree of ZooKeeper. (Not in Kafka.)

`barnabas backup DIR` asks the cluster where its log directories are and copies those of this machine into DIR, as the broker would find
them after a crash at one moment: every record acknowledged before the command began is in the copy. Closed segments are hard links if DIR
is on the same file system. The brokers serve on meanwhile. `barnabas restore DIR` puts the copy in place.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.file_modes import keep_files_private
from barnabas.layout.layout_file import LAYOUT_FILE
from barnabas.metadata.embedded import STORE_NAME
from barnabas.storage.directory.log_dir import SECURE_DIR
from barnabas.storage.directory.meta_properties import MetaPropertiesFile
from barnabas.storage.disk.files import Files
from barnabas.tools.backups.copying import Copier, sync_dir
from barnabas.tools.backups.cut import LogChanged
from barnabas.tools.backups.log_copy import LogDirCut, copy_tree
from barnabas.tools.backups.manifest import STORE_DIR, TREE_DUMP, BrokerCopy, LogDirCopy, Manifest
from barnabas.tools.command_line.failures import ToolError, failed_with_message, finish
from barnabas.tools.command_line.progress import BYTES, ProgressBar, size_text
from barnabas.tools.connecting.connect import open_admin

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_DEFAULT_SERVER: Final = "localhost:9092"
_ATTEMPTS: Final = 20  # retention and compaction change a log now and then
_CONFIGS: Final = ("zookeeper.connect", "metadata.log.dir")


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    return finish(lambda: _execute(given), failed_with_message)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas backup", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("directory", metavar="DIR", help="the directory of the backup; it must be empty or not exist")
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT", default=_DEFAULT_SERVER, help="a broker of the cluster; default: %(default)s"
    )
    parser.add_argument("--command-config", metavar="FILE", default=None, help="settings of the admin client, such as those of security")
    parser.add_argument("--broker", type=int, metavar="ID", default=None, help="only this broker; default: all that have their data here")
    parser.add_argument(
        "--zookeeper", metavar="HOST:PORT/PATH", default=None, help="the ensemble as this machine reaches it; default: as the broker does"
    )
    return parser


def _execute(given: Namespace) -> int:
    keep_files_private()
    backup = os.path.abspath(os.path.expanduser(given.directory))
    _require_empty(backup)
    began = time.monotonic()
    copier = Copier()
    with open_admin(given.bootstrap_server, given.command_config) as admin:
        manifest = Manifest(admin.describe_cluster().cluster_id or "", time.time_ns() // 1_000_000)
        brokers, offline = _local_brokers(admin, manifest.cluster_id, given.broker)
        os.makedirs(backup, exist_ok=True)
        for broker_id, paths in brokers.items():
            manifest.brokers.append(_copy_broker(admin, broker_id, paths, backup, copier))
        _copy_metadata(admin, manifest, brokers, backup, copier, given.zookeeper)
    copier.sync_dirs()
    manifest.write(backup)
    sync_dir(backup)
    _tell(manifest, backup, copier, time.monotonic() - began)
    for path, broker_id in offline:
        print(f"WARNING: the log directory {path} of broker {broker_id} is offline, and not in the backup", file=sys.stderr)
    return 0


def _require_empty(backup: str) -> None:
    if os.path.isdir(backup) and os.listdir(backup):
        raise ToolError(f"{backup} is not empty: name a new directory, or remove what an interrupted backup has left there")
    if os.path.exists(backup) and not os.path.isdir(backup):
        raise ToolError(f"{backup} is a file: name a new directory")


def _local_brokers(admin: Admin, cluster_id: str, only: int | None) -> tuple[dict[int, list[str]], list[tuple[str, int]]]:
    """The log directories of the brokers whose data is on this machine, and those of them that are offline."""
    nodes = [node.id for node in admin.describe_cluster().nodes]
    if only is not None and only not in nodes:
        raise ToolError(f"--broker {only}: the cluster has the brokers {', '.join(map(str, sorted(nodes)))}")
    broker_ids = [only] if only is not None else sorted(nodes)
    described = admin.describe_log_dirs(broker_ids).successes
    brokers: dict[int, list[str]] = {}
    offline: list[tuple[str, int]] = []
    for broker_id in broker_ids:
        log_dirs = described.get(broker_id, {})
        paths = [path for path, description in log_dirs.items() if description.error is None]
        if paths and all(_is_of(path, cluster_id, broker_id) for path in paths):
            brokers[broker_id] = paths
            offline += [(path, broker_id) for path in log_dirs if path not in paths]
    if not brokers:
        raise ToolError(
            "No log directory of the cluster can be read on this machine: run the command on the machine of a broker, as the broker's user"
        )
    return brokers, offline


def _is_of(path: str, cluster_id: str, broker_id: int) -> bool:
    try:
        properties = MetaPropertiesFile(Files(), path).read()
    except OSError:
        return False
    return properties is not None and (properties.cluster_id, properties.node_id) == (cluster_id, broker_id)


def _copy_broker(admin: Admin, broker_id: int, paths: Sequence[str], backup: str, copier: Copier) -> BrokerCopy:
    copies = [LogDirCopy(path, f"broker-{broker_id}/log-dir-{number}") for number, path in enumerate(paths)]
    for _ in range(_ATTEMPTS):
        try:
            cuts = _cut(admin, broker_id, paths)
            size = sum(cut.size for cut in cuts)
            progress = ProgressBar(f"broker {broker_id}", size, BYTES)
            copier.note = progress.add
            try:
                for cut, copy in zip(cuts, copies, strict=True):
                    cut.copy(f"{backup}/{copy.copy}", copier)
            finally:
                progress.end()
            return BrokerCopy(broker_id, copies, sum(cut.partitions for cut in cuts), size)
        except LogChanged:
            copier.remove_made(f"{backup}/broker-{broker_id}")
    raise ToolError(
        f"The logs of broker {broker_id} change faster than they can be listed: try again when fewer segments are deleted or cleaned"
    )


def _cut(admin: Admin, broker_id: int, paths: Sequence[str]) -> list[LogDirCut]:
    """Raises LogChanged."""
    cuts = [LogDirCut(path) for path in paths]
    for cut in cuts:
        cut.begin()
    described = admin.describe_log_dirs([broker_id])
    if broker_id in described.errors:
        raise described.errors[broker_id]
    for cut in cuts:
        description = described.successes[broker_id].get(cut.path)
        if description is None or description.error is not None:
            raise ToolError(f"The log directory {cut.path} of broker {broker_id} went offline: repair it, then take the backup again")
        cut.decide({partition: info.size for partition, info in description.replica_infos.items() if not info.is_future})
    return cuts


def _copy_metadata(
    admin: Admin, manifest: Manifest, brokers: dict[int, list[str]], backup: str, copier: Copier, zookeeper: str | None
) -> None:
    """After the logs: producer ids and topics that the logs name are then in the store."""
    first = next(iter(brokers))
    settings = _settings(admin, first)
    address = zookeeper or settings["zookeeper.connect"]
    if address:
        from barnabas.tools.backups.tree_dump import dump_tree

        manifest.zookeeper = address
        dump_tree(address, f"{backup}/{TREE_DUMP}")
        return
    from barnabas.tools.tree.metadata_tree import copy_store

    home = settings["metadata.log.dir"] or brokers[first][0]
    for place in (home, os.path.dirname(home), *(path for paths in brokers.values() for path in paths)):
        if os.path.exists(f"{place}/{STORE_NAME}"):
            manifest.store = f"{place}/{STORE_NAME}"
            copier.make_dir(f"{backup}/{STORE_DIR}")
            copy_store(Path(manifest.store), Path(backup, STORE_DIR))
            if os.path.exists(f"{place}/{LAYOUT_FILE}"):
                copier.copy(f"{place}/{LAYOUT_FILE}", f"{backup}/{STORE_DIR}/{LAYOUT_FILE}")
            if place not in (path for paths in brokers.values() for path in paths):
                copy_tree(f"{place}/{SECURE_DIR}", f"{backup}/{STORE_DIR}/{SECURE_DIR}", copier)
            return
    raise ToolError(f"The metadata store {STORE_NAME} was not found in {home}: run the command on the machine of the broker")


def _settings(admin: Admin, broker_id: int) -> dict[str, str]:
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.BROKER, str(broker_id))
    described = admin.describe_configs([resource])
    if resource in described.errors:
        raise described.errors[resource]
    config = described.successes[resource]
    return {name: (config[name].value or "") if name in config else "" for name in _CONFIGS}


def _tell(manifest: Manifest, backup: str, copier: Copier, took_s: float) -> None:
    for broker in manifest.brokers:
        print(f"broker {broker.broker_id}: {broker.partitions} partitions, {size_text(broker.size)}")
    print("metadata: " + (f"the tree of {manifest.zookeeper}" if manifest.zookeeper else f"the store {manifest.store}"))
    print(f"{size_text(copier.linked)} linked, {size_text(copier.copied)} copied in {took_s:.1f} s")
    print(f"Put it in place with: barnabas restore {backup}")
