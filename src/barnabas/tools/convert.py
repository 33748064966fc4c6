"""Move the data of `barnabas up` to another number of brokers.

One broker to several, several to one, or several to another number, in the same data directory. Logs are renamed and not copied; topics,
groups with their offsets, transactional ids and settings stay what they were. The brokers have to be stopped. A conversion that was
interrupted is finished by running it again.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from random import SystemRandom

from barnabas.layout.converter import ConversionProgress, Converter
from barnabas.layout.embedded_store import EmbeddedStore
from barnabas.layout.errors import DirectoryInUse, LayoutError, NotConvertible
from barnabas.layout.journal import ConversionJournal
from barnabas.layout.layout import Layout, node_dir
from barnabas.layout.layout_file import used_nodes
from barnabas.layout.plan import Amount, ConversionPlan
from barnabas.metadata.embedded import STORE_NAME
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running.broker_count import broker_count
from barnabas.tools.running.data_home import data_home
from barnabas.tools.running.run import tell
from barnabas.tools.running.secured import up_command


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    try:
        return _convert(given)
    except DirectoryInUse as error:
        return tell(CannotRun(ExitCode.DIRECTORY_IN_USE, str(error)))
    except LayoutError as error:
        return tell(CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error)))
    except Exception as error:
        return tell(error)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas convert", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--data", metavar="DIR", default=None, help=f"of brokers that are stopped; default: {data_home()}")
    parser.add_argument("--brokers", type=broker_count, required=True, metavar="N", help="for how many brokers the directory is to be")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be moved")
    return parser


def _convert(given: Namespace) -> int:
    files, target = Files(), Layout(given.brokers)
    path = os.path.abspath(os.path.expanduser(given.data or data_home()))
    _require_one_file_system(files, path)
    converter = Converter(files, path, EmbeddedStore(f"{path}/{STORE_NAME}", _now_ms), SystemRandom(), _now_ms())
    progress = ConversionProgress(lambda plan: _show(path, plan), lambda journal: _resumed(path, journal))
    if not converter.convert(target, progress, dry_run=given.dry_run):
        print(f"{path} is made for {target}. Serve it with: {up_command(path, target.brokers)}")
    elif given.dry_run:
        print("Nothing was changed (--dry-run).")
    else:
        print(f"Converted. Serve it with: {up_command(path, target.brokers)}")
    return ExitCode.STOPPED


def _require_one_file_system(files: Files, data: str) -> None:
    """A rename does not reach another file system, and a link would be left without what it names."""
    for path in (f"{data}/{node_dir(number)}" for number in used_nodes(files, data)):
        if os.path.islink(path) or os.stat(path).st_dev != os.stat(data).st_dev:
            raise NotConvertible(f"{path} is on another file system, or a link: move it into {data} itself, then convert again")


def _resumed(path: str, journal: ConversionJournal) -> None:
    print(f"{path}: finished the conversion from {journal.source} to {journal.target} that was interrupted")


def _show(path: str, plan: ConversionPlan) -> None:
    print(f"{path}: cluster {plan.cluster_id}, from {plan.source} to {plan.target}")
    width = max((len(topic.name) for topic in plan.topics), default=0)
    for topic in plan.topics:
        after = f" -> {topic.new_replicas}" if topic.new_replicas != topic.replicas else ""
        print(f"  {topic.name:{width}}  partitions={topic.partitions} replicas={topic.replicas}{after}")
    print(f"  {_amount(plan.moved, 'log')} to be moved, by renaming")
    if plan.fetched.logs:
        print(f"  {_amount(plan.fetched, 'new replica')} to be fetched by the brokers after the start")
    if plan.dropped.logs:
        print(f"  {_amount(plan.dropped, 'replica')} to be removed: other replicas have all of it")
    for remark in plan.remarks:
        print(f"  note: {remark}")


def _amount(amount: Amount, what: str) -> str:
    return f"{amount.logs} {what}{'' if amount.logs == 1 else 's'} of {amount.size:,} bytes"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
