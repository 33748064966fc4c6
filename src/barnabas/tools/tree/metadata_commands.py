"""The commands of the metadata shell, with Kafka's names and messages: each takes words and the state of the shell, and returns lines."""

from __future__ import annotations

from argparse import ArgumentError
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from barnabas.tools.command_line.arguments import ArgumentsRefused, Parser, number
from barnabas.tools.tree.metadata_tree import MetadataNode, ShellState

_INDENT: Final = "  "


class ExitShell(Exception):
    """Ends the shell."""


@dataclass
class ShellSession:
    """The state of a shell. Without a screen (a pipe, or a single command) `ls` prints one name per line."""

    state: ShellState
    screen_width: int | None = None
    history: Sequence[str] = ()


@dataclass(frozen=True)
class Command:
    name: str
    about: str
    run: Callable[[ShellSession, Any], Iterator[str]]
    arguments: tuple[tuple[str, dict[str, Any]], ...] = ()
    shell_only: bool = False


def run(words: Sequence[str], session: ShellSession, *, interactive: bool) -> list[str]:
    """The lines that a command prints."""
    trimmed = list(words)
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    if not trimmed:
        return []
    try:
        given = parser(interactive=interactive).parse(trimmed)
    except (ArgumentsRefused, ArgumentError) as refused:
        return [str(refused)]
    return list(COMMANDS[given.command].run(session, given))


def parser(*, interactive: bool) -> Parser:
    whole = Parser(prog="metadata-shell", add_help=False)
    commands = whole.add_subparsers(dest="command", required=True)
    for command in COMMANDS.values():
        if interactive or not command.shell_only:
            _add_arguments(commands.add_parser(command.name, help=command.about, add_help=False), command)
    return whole


def _add_arguments(one: Any, command: Command) -> None:
    for name, settings in command.arguments:
        one.add_argument(name, **settings)


def _cat(session: ShellSession, given: Any) -> Iterator[str]:
    for target in given.targets:
        for _, node in _found(session, target):
            if node is None:
                yield f"cat: {target}: No such file or directory."
            elif node.data:
                yield contents(node)
            else:
                yield f"cat: {target}: Is a directory"


def _cd(session: ShellSession, given: Any) -> Iterator[str]:
    target = given.target or "/"
    for path, node in _found(session, target):
        if node is None:
            yield f"cd: {target}: no such directory."
        elif not node.is_directory:
            yield f"cd: {target}: not a directory."
        else:
            session.state.working_directory = path


def _exit(session: ShellSession, given: Any) -> Iterator[str]:
    raise ExitShell


def _find(session: ShellSession, given: Any) -> Iterator[str]:
    for path in [path_given for path_given in given.paths if path_given] or ["."]:
        for _, node in _found(session, path):
            if node is None:
                yield f"find: {path}: no such file or directory."
            else:
                yield from _walk(path, node)


def _walk(path: str, node: MetadataNode) -> Iterator[str]:
    yield path
    for name in node.child_names():
        yield from _walk(f"{path}{name}" if path == "/" else f"{path}/{name}", node.children[name])


def _help(session: ShellSession, given: Any) -> Iterator[str]:
    yield "Welcome to the metadata shell.\n"
    width = max(map(len, COMMANDS))
    for command in COMMANDS.values():
        yield f"{_INDENT}{command.name:{width}}  {command.about}"


def _history(session: ShellSession, given: Any) -> Iterator[str]:
    count = len(session.history) if given.entries is None else max(0, given.entries)
    first = max(0, len(session.history) - count)
    for index, line in enumerate(session.history[first:], first):
        yield f"{index: 5d}  {line}"


def _ls(session: ShellSession, given: Any) -> Iterator[str]:
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    for target in [target_given for target_given in given.targets if target_given] or ["."]:
        for path, node in _found(session, target):
            if node is None:
                yield f"ls: {target}: no such file or directory."
            elif node.is_directory:
                directories.append((_last(path), node.child_names()))
            else:
                files.append(_last(path))
    yield from columns(files, session.screen_width)
    with_names = bool(files) or len(directories) > 1
    for index, (name, children) in enumerate(directories):
        if with_names and children:
            yield f"{name}:" if index == 0 and not files else f"\n{name}:"
        yield from columns(children, session.screen_width)


def _man(session: ShellSession, given: Any) -> Iterator[str]:
    command = COMMANDS.get(given.cmd)
    if command is None:
        yield f"man: unknown command {given.cmd}. Type help to get a list of commands."
        return
    one = Parser(prog=command.name, add_help=False)
    _add_arguments(one, command)
    yield f"{command.name}: {command.about}\n"
    yield one.format_help().rstrip()


def _pwd(session: ShellSession, given: Any) -> Iterator[str]:
    yield session.state.working_directory


def _stat(session: ShellSession, given: Any) -> Iterator[str]:
    for target in given.targets:
        for path, node in _found(session, target):
            if node is None:
                yield f"stat: {target}: No such file or directory."
                continue
            yield path
            if node.stat is not None:
                yield f"{_INDENT}data version {node.stat.version}, {len(node.data)} bytes, {len(node.children)} children"
                yield f"{_INDENT}created {_time(node.stat.ctime)} (zxid {node.stat.czxid:#x})"
                yield f"{_INDENT}changed {_time(node.stat.mtime)} (zxid {node.stat.mzxid:#x}), children zxid {node.stat.pzxid:#x}"


def _tree(session: ShellSession, given: Any) -> Iterator[str]:
    for target in given.targets:
        for path, node in _found(session, target):
            if node is None:
                yield f"tree: {target}: No such file or directory."
            else:
                yield from _branch(_last(path), node, "")


def _branch(name: str, node: MetadataNode, indent: str) -> Iterator[str]:
    data = f" {contents(node)}" if node.data else ""
    yield f"{indent}{name}:{data}"
    for child in node.child_names():
        yield from _branch(child, node.children[child], indent + _INDENT)


def contents(node: MetadataNode) -> str:
    """The data as text, with escapes for bytes that are not text."""
    return node.data.decode("utf-8", "backslashreplace").rstrip("\n")


def columns(entries: Sequence[str], width: int | None) -> Iterator[str]:
    """Names in as many columns as fit on the screen, top to bottom."""
    best = 1
    if width is not None:
        for count in range(width // 4, 1, -1):
            rows = -(-len(entries) // count)
            if rows and -(-len(entries) // rows) == count and sum(_widths(entries, rows)) <= width:
                best = count
                break
    rows = -(-len(entries) // best)
    widths = _widths(entries, rows) if rows else []
    for row in range(rows):
        names = entries[row::rows]
        padded = [f"{name:{widths[column]}}" if column < len(names) - 1 else name for column, name in enumerate(names)]
        yield "".join(padded)


def _widths(entries: Sequence[str], rows: int) -> list[int]:
    return [max(len(name) + 2 for name in entries[first : first + rows]) for first in range(0, len(entries), rows)]


def _found(session: ShellSession, target: str) -> Iterator[tuple[str, MetadataNode | None]]:
    is_found = False
    for node in session.state.find(target):
        is_found = True
        yield node
    if not is_found:
        yield "", None


def _last(path: str) -> str:
    return path.rpartition("/")[2] or "/"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_SOME_NODES: Final = ("targets", {"nargs": "+", "help": "the nodes"})
COMMANDS: Final = {
    command.name: command
    for command in (
        Command("cat", "Show the contents of metadata files.", _cat, (_SOME_NODES,)),
        Command("cd", "Set the current working directory.", _cd, (("target", {"nargs": "?", "help": "the directory to change to"}),), True),
        Command("exit", "Exit the metadata shell.", _exit, (), True),
        Command(
            "find",
            "Search for nodes in the directory hierarchy.",
            _find,
            (("paths", {"nargs": "*", "help": "where to start"}),),
        ),
        Command("help", "Display this help message.", _help, (), True),
        Command(
            "history",
            "Print command history.",
            _history,
            (("entries", {"nargs": "?", "type": number("Integer"), "help": "how many of the last commands"}),),
            True,
        ),
        Command("ls", "List metadata nodes.", _ls, (("targets", {"nargs": "*", "help": "the nodes"}),)),
        Command("man", "Show the help text for a specific command.", _man, (("cmd", {"help": "the command"}),), True),
        Command("pwd", "Print the current working directory.", _pwd, (), True),
        Command("stat", "Show versions and times of metadata nodes. (Not in Kafka.)", _stat, (_SOME_NODES,)),
        Command("tree", "Show the contents of metadata nodes in a tree structure.", _tree, (_SOME_NODES,)),
    )
}
