"""Take over log directories written by Apache Kafka, without rewriting them.

Finds out what is in them, prints it, and writes the metadata store that a broker needs to serve them; `barnabas server` and `barnabas up`
do the rest. Running it again adds what is new and changes nothing else. The logs themselves are only read.
"""

from __future__ import annotations

import asyncio
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from random import SystemRandom

from barnabas.broker.adoption.adoption import Adoption, plan, require_complete, write_store
from barnabas.broker.adoption.inventory import KafkaInventory, NotAdoptable, take_inventory
from barnabas.metadata.embedded import STORE_NAME
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.command_line.progress import ProgressBar
from barnabas.tools.running.run import tell


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    try:
        return _adopt(given)
    except NotAdoptable as error:
        return tell(CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error)))
    except Exception as error:
        return tell(error)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas adopt", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("dirs", nargs="+", metavar="DIR", help="all log.dirs of one node, in the order in which the broker will have them")
    parser.add_argument("--metadata-dir", metavar="DIR", help="the node's metadata.log.dir, if it has one; default: the first DIR")
    parser.add_argument("--create-missing", action="store_true", help="let partitions that are not in the directories begin empty")
    parser.add_argument(
        "--broker-retention",
        action="store_true",
        help="let topics without a retention.ms of their own follow the broker's; without this they get -1, and keep all they have",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be taken over")
    return parser


def _adopt(given: Namespace) -> int:
    files = Files()
    dirs = [os.path.abspath(path) for path in given.dirs]
    metadata_dir = os.path.abspath(given.metadata_dir) if given.metadata_dir is not None else dirs[0]
    log_dirs = _lock(files, dirs)
    try:
        bar = ProgressBar("reading", 0, "partitions", after_s=1)
        try:
            inventory = take_inventory(files, log_dirs, metadata_dir, bar.at)
        finally:
            bar.end()
        adoption = plan(inventory, SystemRandom(), broker_retention=given.broker_retention, create_missing=given.create_missing)
        _show(dirs, inventory, adoption)
        if not given.create_missing:
            require_complete(adoption)
        if given.dry_run:
            print("Nothing was written (--dry-run).")
            return ExitCode.STOPPED
        added = asyncio.run(write_store(adoption, os.path.join(metadata_dir, STORE_NAME), lambda: time.time_ns() // 1_000_000))
    finally:
        for log_dir in log_dirs:
            log_dir.release()
    known = len(adoption.topics) - len(added)
    print(f"Adopted {len(added)} topics" + (f"; {known} were known already." if known else "."))
    print(f"Serve them with: {_next_command(dirs, given.metadata_dir)}")
    return ExitCode.STOPPED


def _lock(files: Files, dirs: Sequence[str]) -> list[LogDir]:
    """So that no broker, ours or Apache Kafka's, works in there meanwhile."""
    locked: list[LogDir] = []
    try:
        for path in dict.fromkeys(dirs):
            if not files.is_dir(path):
                raise NotAdoptable(f"{path} is not a directory: name the log.dirs of an Apache Kafka node")
            locked.append(LogDir(files, path))
    except BaseException:
        for log_dir in locked:
            log_dir.release()
        raise
    return locked


def _show(dirs: Sequence[str], inventory: KafkaInventory, adoption: Adoption) -> None:
    mode = "KRaft" if inventory.kraft is not None or inventory.meta.version > 0 else "ZooKeeper mode"
    print(f"{', '.join(dirs)}: Apache Kafka ({mode}), cluster {adoption.cluster_id}, node {adoption.node_id}")
    width = max((len(topic.name) for topic in adoption.topics), default=0)
    for topic in adoption.topics:
        epochs = [epoch for epoch in topic.leader_epochs.values() if epoch is not None]
        line = f"  {topic.name:{width}}  partitions={len(topic.leader_epochs)} leader-epoch={max(epochs, default=0)}"
        line += f" id={topic.topic_id}{' (new)' if topic.has_new_id else ''}"
        settings = ",".join(f"{name}={value}" for name, value in sorted(topic.configs.items()))
        print(line + (f" configs={settings}" if settings else ""))
    count = sum(len(topic.leader_epochs) for topic in adoption.topics)
    print(f"  {len(adoption.topics)} topics, {count} partitions; new producers get ids from {adoption.next_producer_id} on")
    for remark in adoption.remarks:
        print(f"  note: {remark}")


def _next_command(dirs: Sequence[str], metadata_dir: str | None) -> str:
    if len(dirs) == 1 and metadata_dir is None:
        return f"barnabas up --data {dirs[0]}"
    own_store = f" --override metadata.log.dir={os.path.abspath(metadata_dir)}" if metadata_dir is not None else ""
    return f"barnabas server --override log.dirs={','.join(dirs)}{own_store}"
