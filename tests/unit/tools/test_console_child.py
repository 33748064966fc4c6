"""Whether a broker has a console, and what its banner says about it."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from pathlib import Path

import pytest

from barnabas.tools import server, up
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.running import console_child
from barnabas.tools.running.console_child import ConsoleChild, ConsoleOptions, add_console_options, console_options
from barnabas.tools.running.settings import settings


@pytest.mark.parametrize(
    ("words", "is_wanted", "options"),
    [
        ((), False, None),
        ((), True, ConsoleOptions(8080, False)),
        (("--console-port", "9000"), False, ConsoleOptions(9000, False)),
        (("--console-write",), True, ConsoleOptions(8080, True)),
    ],
)
def test_a_console_that_is_wanted_or_has_a_port(words: tuple[str, ...], is_wanted: bool, options: ConsoleOptions | None) -> None:
    parser = ArgumentParser()
    add_console_options(parser)
    assert console_options(parser.parse_args(words), is_wanted) == options


@pytest.mark.parametrize(("words", "has_console"), [(["--port", "0"], False), ([], True), (["--no-console"], False)])
def test_up_has_one_unless_its_port_is_0(words: list[str], has_console: bool) -> None:
    assert (up._console(up.build_parser().parse_args(words)) is not None) is has_console


def test_the_console_takes_no_module_from_the_current_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_child, "is_installed", lambda: True)

    async def command() -> list[str]:
        console = ConsoleChild(ConsoleOptions(0, False))
        console.announce()
        console.start("localhost:1")
        await console.stop()  # before the process has begun
        return console._command

    words = asyncio.run(command())
    assert words[1 : words.index("-m")] == ["-P"]


def test_without_the_extra_the_banner_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_child, "is_installed", lambda: False)
    assert ConsoleChild(ConsoleOptions(0, False)).announce() == ["the console is not installed: pip install 'barnabas[console]'"]


def test_a_server_with_a_secured_listener_needs_settings_for_the_console(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    listener = {"listeners": "SASL_PLAINTEXT://localhost:9092", "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    config = settings({"broker.id": "1", "log.dirs": str(tmp_path), "barnabas.sasl.plain.users": "a:b", **listener}).config
    parser = server.build_parser()
    assert server._console(parser.parse_args([]), config) is None
    with pytest.raises(CannotRun, match="--console-client") as refused:
        server._console(parser.parse_args(["--console"]), config)
    assert refused.value.code is ExitCode.INVALID_CONFIG
    assert server._console(parser.parse_args(["--console", "--console-client", str(tmp_path / "client.properties")]), config) is not None
