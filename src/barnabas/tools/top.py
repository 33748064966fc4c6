"""Watch a cluster in a terminal: health, brokers, groups and the busiest topics, live.

It shows what the console's overview shows, from the same samples, and works with any Kafka. q ends it, s sorts the topics by the next
column. With --once, or into a pipe, it prints the screen once as plain text, for scripts.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.tools.command_line.failures import ToolError, message_of
from barnabas.tools.connecting.connect import load_properties
from barnabas.tools.connecting.default_cluster import LOCAL_SERVER
from barnabas.tools.running.console_child import INSTALL

if TYPE_CHECKING:
    from barnabas.console.cluster.sampler import Sampler
    from barnabas.console.cluster.snapshot import ClusterSnapshot
    from barnabas.tools.terminal.top_view import Rates

SORTS: Final = ("rate", "size", "lag", "name")
_SAMPLES_OF_ONCE: Final = 2  # rates are differences of two samples
_PIPE_WIDTH: Final = 140
_SETTINGS: Final = {
    "client.id": "barnabas-top",
    "enable.metrics.push": "false",
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
}


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    if find_spec("rich") is None:
        return _refuse(f"barnabas top draws with rich, which is not installed: {INSTALL}")
    from barnabas.errors import KafkaError

    try:
        return asyncio.run(_run(given))
    except KeyboardInterrupt:
        return 0
    except ToolError as error:
        return _refuse(str(error))
    except KafkaError as error:
        return _refuse(f"the cluster at {_servers(given)} does not answer: {message_of(error)}", 1)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas top", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the cluster; any Kafka; default: localhost:9092")
    parser.add_argument("--command-config", metavar="FILE.properties", help="settings of the client, such as those of security")
    parser.add_argument(
        "--metrics", action="append", default=[], metavar="URL", help="the metrics of a broker, for bytes in and out; repeatable"
    )
    parser.add_argument("--sort", choices=SORTS, default=SORTS[0], help="what topics are sorted by; default: %(default)s")
    parser.add_argument("--once", action="store_true", help="print the screen once, after two samples, and end")
    return parser


async def _run(given: Namespace) -> int:
    from barnabas.client.admin.async_admin import AsyncAdmin
    from barnabas.client.config.config import SharedSettings
    from barnabas.console.cluster.broker_metrics import BrokerMetrics
    from barnabas.console.cluster.sampler import Sampler

    settings: dict[str, Any] = {**_SETTINGS, **load_properties(given.command_config), "bootstrap.servers": _servers(given)}
    async with AsyncAdmin(SharedSettings(settings)) as admin:
        sampler = Sampler(admin, BrokerMetrics(given.metrics, settings))
        try:
            if given.once or not sys.stdout.isatty():
                await _print_once(sampler, given.sort)
            else:
                await _watch(sampler, given.sort)
        finally:
            await sampler.close()
    return 0


async def _print_once(sampler: Sampler, sort: str) -> None:
    from rich.console import Console

    from barnabas.tools.terminal.top_view import view

    seen = 0
    async for snapshot in sampler.updates():
        seen += 1
        if seen == _SAMPLES_OF_ONCE:
            console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
            console.print(view(snapshot, _rates(sampler), sort))
            return


async def _watch(sampler: Sampler, sort: str) -> None:
    from rich.console import Console
    from rich.live import Live

    from barnabas.tools.terminal.keys import reading_keys

    console = Console(highlight=False)
    screen = Screen(sampler, sort)
    with Live(console=console, screen=True, auto_refresh=False) as live, reading_keys(screen.key):
        watching = asyncio.create_task(screen.follow())
        try:
            while not screen.is_over:
                if watching.done():
                    watching.result()  # raises what ended it
                if screen.snapshot is not None:
                    live.update(screen.drawing(console.height), refresh=True)
                await screen.changed()
        finally:
            watching.cancel()


class Screen:
    """The state of the screen: the newest snapshot, and the order of the topics."""

    def __init__(self, sampler: Sampler, sort: str) -> None:
        self.is_over = False
        self.sort = sort
        self.snapshot: ClusterSnapshot | None = None
        self._sampler = sampler
        self._changed = asyncio.Event()

    def key(self, character: str) -> None:
        step = {"s": 1, "r": -1}.get(character)
        if character in ("q", "Q", "\x03", "\x04"):
            self.is_over = True
        elif step is not None:
            self.sort = SORTS[(SORTS.index(self.sort) + step) % len(SORTS)]
        self._changed.set()

    async def follow(self) -> None:
        """Takes each new snapshot."""
        try:
            async for snapshot in self._sampler.updates():
                self.snapshot = snapshot
                self._changed.set()
        finally:
            self._changed.set()

    async def changed(self) -> None:
        """Returns at the next key or snapshot."""
        await self._changed.wait()
        self._changed.clear()

    def drawing(self, height: int) -> Any:
        from barnabas.tools.terminal.top_view import view

        assert self.snapshot is not None
        return view(self.snapshot, _rates(self._sampler), self.sort, height, keys=True)


def _rates(sampler: Sampler) -> Rates:
    from barnabas.tools.terminal.top_view import Rates

    history = sampler.history
    incoming, outgoing = (tuple(value or 0.0 for _, value in history.total(name)) for name in ("records_in", "records_out"))
    return Rates(incoming, outgoing)


def _servers(given: Namespace) -> str:
    own = load_properties(given.command_config).get("bootstrap.servers")
    return str(given.bootstrap_server or own or LOCAL_SERVER)


def _refuse(text: str, code: int = ExitCode.INVALID_CONFIG) -> int:
    print(f"barnabas: {text}", file=sys.stderr, flush=True)
    return code
