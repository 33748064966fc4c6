"""Put a backup of `barnabas backup` in place, so that brokers start from it. (Not in Kafka.)

`barnabas restore DIR` copies the backup to the paths it was taken from, or below another directory with --data. Directories with data are
refused. The tree of ZooKeeper goes into an empty chroot with --zookeeper. The backup is not changed and can be restored again. A restore
that fails removes what it has copied, and no broker starts from one that was killed.
"""

from __future__ import annotations

import os
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from barnabas.file_modes import keep_files_private
from barnabas.metadata.embedded import STORE_NAME
from barnabas.storage.directory.log_dir import LOCK_FILE, RESTORE_MARK
from barnabas.storage.directory.meta_properties import META_PROPERTIES
from barnabas.storage.directory.names import LOG_SUFFIX
from barnabas.tools.backups.copying import Copier, sync_dir
from barnabas.tools.backups.log_copy import copy_tree
from barnabas.tools.backups.manifest import STORE_DIR, TREE_DUMP, BrokerCopy, Manifest, read_manifest
from barnabas.tools.command_line.failures import ToolError, failed_with_message, finish
from barnabas.tools.command_line.progress import BYTES, ProgressBar, size_text
from barnabas.tools.running.secured import up_command

_LEFT: Final = (LOCK_FILE, "lost+found")  # may be in a directory without data


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    return finish(lambda: _execute(given), failed_with_message)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas restore", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("directory", metavar="DIR", help="a directory that `barnabas backup` has written")
    parser.add_argument("--data", metavar="DIR", default=None, help="where the data goes; default: to the paths it was taken from")
    parser.add_argument("--broker", type=int, metavar="ID", default=None, help="only this broker, and nothing of the metadata")
    parser.add_argument("--zookeeper", metavar="HOST:PORT/PATH", default=None, help="the empty chroot for the tree of a cluster")
    return parser


def _execute(given: Namespace) -> int:
    keep_files_private()
    backup = os.path.abspath(os.path.expanduser(given.directory))
    manifest = read_manifest(backup)
    brokers = _chosen(manifest, given.broker)
    for broker in brokers:
        _require_whole(backup, broker)
    places = _places(manifest, given.data)
    targets = {places[log_dir.path]: f"{backup}/{log_dir.copy}" for broker in brokers for log_dir in broker.log_dirs}
    store = places[manifest.store] if manifest.store is not None and given.broker is None else None
    _require_unused([*targets, *([os.path.dirname(store)] if store is not None else [])])
    if given.zookeeper is not None and manifest.zookeeper is None:
        raise ToolError(f"--zookeeper: {backup} has no tree of ZooKeeper, its metadata are in {STORE_NAME}; leave the option out")
    tree = _tree_for(manifest, given.zookeeper) if manifest.zookeeper is not None and given.broker is None else None
    if tree is not None:
        from barnabas.tools.backups.tree_dump import require_empty_tree

        require_empty_tree(tree)
    znodes = _put_in_place(Restoration(backup, targets, store, tree), sum(broker.size for broker in brokers))
    if tree is not None:
        print(f"{znodes} znodes in {tree}")
    for broker in brokers:
        print(f"broker {broker.broker_id}: {broker.partitions} partitions, {size_text(broker.size)} in {_listed(broker, places)}")
    if store is not None:
        print(f"Start it with: {up_command(os.path.dirname(store), len(manifest.brokers))}")
    elif manifest.zookeeper is not None:
        print(f"Start each broker with the log.dirs above, and zookeeper.connect={given.zookeeper or manifest.zookeeper}")
    else:
        print(f"The metadata store is not restored with --broker; it is in {backup}/{STORE_DIR}")
    return 0


def _chosen(manifest: Manifest, only: int | None) -> list[BrokerCopy]:
    brokers = [broker for broker in manifest.brokers if only is None or broker.broker_id == only]
    if not brokers:
        known = ", ".join(str(broker.broker_id) for broker in manifest.brokers)
        raise ToolError(f"--broker {only}: the backup has the brokers {known}")
    return brokers


def _require_whole(backup: str, broker: BrokerCopy) -> None:
    """Raises ToolError if files of a copy are missing: restoring the rest would look like a complete restore."""
    size = 0
    for log_dir in broker.log_dirs:
        source = os.path.join(backup, log_dir.copy)
        if not os.path.exists(f"{source}/{META_PROPERTIES}"):
            raise ToolError(f"{backup} is damaged: {log_dir.copy}/{META_PROPERTIES} is missing. Restore from another backup")
        size += sum(os.path.getsize(os.path.join(source, *path)) for path in _files(source) if path[1].endswith(LOG_SUFFIX))
    if size != broker.size:
        raise ToolError(
            f"{backup} is damaged: the segments of broker {broker.broker_id} have {size} bytes, and had {broker.size} when the backup was "
            "taken. Restore from another backup"
        )


def _places(manifest: Manifest, data: str | None) -> dict[str, str]:
    """The target by the path at the time of the backup. With --data the paths keep their form below what they have in common."""
    paths = [log_dir.path for broker in manifest.brokers for log_dir in broker.log_dirs]
    if manifest.store is not None:
        paths.append(manifest.store)
    if data is None:
        return {path: path for path in paths}
    new = os.path.abspath(os.path.expanduser(data))
    homes = [path if path != manifest.store else os.path.dirname(path) for path in paths]
    common = os.path.commonpath(homes)
    return {path: os.path.normpath(os.path.join(new, os.path.relpath(path, common))) for path in paths}


def _require_unused(directories: Sequence[str]) -> None:
    for path in dict.fromkeys(directories):
        if os.path.exists(path) and not os.path.isdir(path):
            raise ToolError(f"{path} is a file: name another directory with --data")
        if os.path.exists(f"{path}/{RESTORE_MARK}"):
            raise ToolError(
                f"{path} has what a restore has left that was killed, or still runs: remove what is in it, or name another directory with "
                "--data"
            )
        if _contents(path):
            raise ToolError(f"{path} has data: stop its broker and move the directory away, or name another directory with --data")


def _tree_for(manifest: Manifest, zookeeper: str | None) -> str:
    if zookeeper is None:
        raise ToolError(
            f"The backup has the tree of {manifest.zookeeper}: name the chroot for it with --zookeeper, or restore the data of one broker "
            "alone with --broker"
        )
    return zookeeper


@dataclass(frozen=True)
class Restoration:
    """The copy of each log directory by its target, the path of the embedded metadata store, and the address of the tree of ZooKeeper."""

    backup: str
    targets: dict[str, str]
    store: str | None
    tree: str | None

    @property
    def places(self) -> list[str]:
        """The directories that are written, those above others last."""
        above = [] if self.store is None else [os.path.dirname(self.store)]
        return sorted({*self.targets, *above}, key=lambda path: (-path.count(os.sep), path))


def _put_in_place(restoration: Restoration, size: int) -> int:
    """Restores all, or leaves nothing behind. Returns the number of znodes that were created."""
    new = [path for path in restoration.places if not os.path.exists(path)]
    progress = ProgressBar("restoring", size, BYTES)
    try:
        return _copy(restoration, Copier(progress.add))
    except BaseException:
        _remove(restoration, new)
        raise
    finally:
        progress.end()


def _copy(restoration: Restoration, copier: Copier) -> int:
    """While the mark is in a directory, no broker starts from it. The tree comes after the logs, because it makes a cluster of them."""
    targets, backup, store, znodes = restoration.targets, restoration.backup, restoration.store, 0
    for target in targets:
        copier.make_dir(target)
        with open(f"{target}/{RESTORE_MARK}", "wb"):
            pass
    copier.sync_dirs()
    for target, source in targets.items():
        for directory, name in _files(source):
            copier.make_dir(os.path.join(target, directory))
            copier.copy(os.path.join(source, directory, name), os.path.join(target, directory, name))
    if store is not None:
        copy_tree(f"{backup}/{STORE_DIR}", os.path.dirname(store), copier)
    copier.sync_dirs()
    if restoration.tree is not None:
        from barnabas.tools.backups.tree_dump import load_tree

        znodes = load_tree(f"{backup}/{TREE_DUMP}", restoration.tree)
    for target in targets:
        os.unlink(f"{target}/{RESTORE_MARK}")
        sync_dir(target)
    return znodes


def _remove(restoration: Restoration, new: Sequence[str]) -> None:
    """Removes what a restore that failed has copied, the marks last. Nothing else was in these directories."""
    for path in restoration.places:
        for name in _contents(path):
            if name != RESTORE_MARK:
                _delete(f"{path}/{name}")
        _delete(f"{path}/{RESTORE_MARK}")
        if path in new:
            with suppress(OSError):
                os.rmdir(path)


def _contents(path: str) -> list[str]:
    return [name for name in os.listdir(path) if name not in _LEFT] if os.path.isdir(path) else []


def _delete(path: str) -> None:
    with suppress(OSError):  # the error that ended the restore is the one to report
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _files(source: str) -> Iterator[tuple[str, str]]:
    """The directories below `source`, relative to it, and the names of the files in them."""
    for directory, _, names in os.walk(source):
        relative = os.path.relpath(directory, source)
        for name in sorted(names):
            yield "" if relative == "." else relative, name


def _listed(broker: BrokerCopy, places: dict[str, str]) -> str:
    return ", ".join(places[log_dir.path] for log_dir in broker.log_dirs)
