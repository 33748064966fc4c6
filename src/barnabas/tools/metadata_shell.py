"""Look around in the metadata of a broker's data directory, as kafka-metadata-shell does in a Raft log.

`metadata-shell --data DIR` opens a shell with ls, cat, cd, find, tree, man and so on; `metadata-shell --data DIR ls /brokers` runs one
command; `--zookeeper` takes the tree of a cluster instead. Nothing is ever changed: of a store a copy is read, also while the broker
runs. The tree shown is of the moment of the start.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from argparse import REMAINDER
from collections.abc import Sequence
from typing import Final

from barnabas.tools.command_line.arguments import ArgumentsRefused, Parser, refused_text
from barnabas.tools.command_line.failures import ToolError, finish, message_of
from barnabas.tools.tree.metadata_commands import COMMANDS, ExitShell, ShellSession, run
from barnabas.tools.tree.metadata_tree import ShellState, load, load_from_zookeeper

_PROMPT: Final = ">> "
_TAKES_COMMANDS: Final = "man"


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), _failed)


def _failed(error: Exception) -> int:
    if isinstance(error, ArgumentsRefused):
        print(refused_text(error), file=sys.stderr)
    elif isinstance(error, ToolError):
        print(f"Error: {message_of(error)}", file=sys.stderr)
    else:
        print(f"Unexpected error: {message_of(error)}", file=sys.stderr)
    return 1


def build_parser() -> Parser:
    parser = Parser(
        prog="kafka-metadata-shell",
        description="Look around in the metadata of a broker's data directory: ls, cat, cd, find, tree and so on.",
    )
    parser.add_version()
    parser.add_argument("--data", "-d", help="the data directory of a broker")
    parser.add_argument("--snapshot", "-s", help="the metadata store itself (barnabas.db), or a copy of it")
    parser.add_argument("--zookeeper", "-z", metavar="HOST:PORT/PATH", help="the ZooKeeper of a cluster that has one")
    parser.add_argument("command", nargs=REMAINDER, help="the command to run; without one a shell is opened")
    return parser


def _execute(arguments: Sequence[str]) -> int:
    given = build_parser().parse(list(arguments))
    place = given.snapshot or given.data
    if place is None and given.zookeeper is None:
        raise ToolError(
            "You must specify the data directory of a broker with --data, its metadata store with --snapshot, "
            "or the ZooKeeper of a cluster with --zookeeper."
        )
    state = ShellState(load_from_zookeeper(given.zookeeper) if place is None else load(place))
    if given.command:
        for line in run(given.command, ShellSession(state), interactive=False):
            print(line)
        return 0
    return _shell(state)


def _shell(state: ShellState) -> int:
    """Reads commands until the end of the input; with completion of commands and paths where somebody types them."""
    on_screen = sys.stdin.isatty() and sys.stdout.isatty()
    if on_screen:
        _complete(state)
    print("[ Kafka Metadata Shell ]")
    history: list[str] = []
    while True:
        try:
            line = input(_PROMPT if on_screen else "")
        except EOFError:
            return 0
        except KeyboardInterrupt:
            print("^C")
            continue
        if line.strip():
            history.append(line)
        width = shutil.get_terminal_size().columns if on_screen else None
        try:
            for printed in run(_words(line), ShellSession(state, width, history), interactive=True):
                print(printed)
        except ExitShell:
            return 0


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _complete(state: ShellState) -> None:
    try:
        import readline
    except ImportError:
        return  # a Python without it: the shell works, only without completion and editing

    def complete(prefix: str, number: int) -> str | None:
        matches = candidates(state, readline.get_line_buffer(), prefix)
        return matches[number] if number < len(matches) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def candidates(state: ShellState, line: str, prefix: str) -> list[str]:
    """What the word at the end of a line may become."""
    words = line.split()
    if not words or (len(words) == 1 and not line.endswith(" ")) or words[0] == _TAKES_COMMANDS:
        return [f"{name} " for name in COMMANDS if name.startswith(prefix)]
    before, slash, last = prefix.rpartition("/")
    directory = state.root.descend(state.absolute(before + slash or "."))
    if directory is None:
        return []
    return [
        f"{before}{slash}{name}{'/' if directory.children[name].children else ' '}"
        for name in directory.child_names()
        if name.startswith(last)
    ]
