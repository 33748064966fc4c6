"""Run a broker with the settings of a server.properties file.

The file is Apache Kafka's, as it is; `--override` comes after it, as in kafka-server-start. `running/run.py` does the rest. With
`--processes N` the machine has N brokers (`processes/`).
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.endpoint import SecurityProtocol
from barnabas.layout.layout_file import used_nodes
from barnabas.security.new_user import NewUser
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode
from barnabas.tools.processes.process_count import add_process_option
from barnabas.tools.running.console_child import ConsoleChild, add_console_options, console_options
from barnabas.tools.running.new_users import add_user_options, read_new_users
from barnabas.tools.running.overrides import read_overrides
from barnabas.tools.running.run import run, serve
from barnabas.tools.running.run_options import add_run_options
from barnabas.tools.running.settings import Settings, read_properties_file, settings

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)

    new_users: list[NewUser] = []

    def make_settings() -> Settings:
        new_users[:] = read_new_users(given)
        properties = read_properties_file(given.file) if given.file is not None else {}
        overrides = read_overrides(given)
        made = settings({**properties, **overrides.properties}, overrides.remarks)
        if given.processes is not None:
            _fit(made.config, given.processes, arguments)
        return made

    async def serve_with(config: BrokerConfig, log_format: str) -> int:
        if given.processes is None or (given.processes == 1 and not _is_of_processes(config)):
            return await serve(config, log_format, new_users, console=_console(given, config))
        return await _serve_processes(config, log_format, given, new_users)

    return run(make_settings, given.log_level, given.log_format, serve_with, log_directory=given.logs)


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas server", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("file", nargs="?", metavar="FILE.properties", help="Kafka's server.properties; without it, Kafka's defaults")
    add_process_option(parser)
    add_user_options(parser)
    parser.add_argument("--console", action="store_true", help="also serve the console, the web page of the cluster")
    add_console_options(parser)
    parser.add_argument(
        "--console-client", metavar="FILE.properties", help="settings of the console's clients, for a listener that is not PLAINTEXT"
    )
    add_run_options(parser, log_level="info")
    return parser


def _fit(config: BrokerConfig, processes: int, arguments: Sequence[str]) -> None:
    """Converts data of another number of processes."""
    from barnabas.tools.processes.process_plan import is_shared, store_path
    from barnabas.tools.processes.process_settings import check_directories, first_node_id
    from barnabas.tools.processes.resizing import fit

    check_directories(config)
    fit(config.log_dirs, store_path(config), processes, first_node_id(config, is_shared=is_shared(config)), ["server", *arguments])


async def _serve_processes(config: BrokerConfig, log_format: str, given: Namespace, new_users: Sequence[NewUser]) -> int:
    from barnabas.tools.processes.parent import serve_processes
    from barnabas.tools.processes.process_plan import process_plan, store_path
    from barnabas.tools.processes.resizing import is_convertible, process_layout

    is_one_directory = is_convertible(config.log_dirs, store_path(config))
    layout = process_layout(config.log_dirs[0], given.processes) if is_one_directory else None
    plan = process_plan(config, given.processes, layout, given.log_level, log_format, given.logs, new_users)
    return await serve_processes(plan, console=_console(given, plan.configs[0]))


def _is_of_processes(config: BrokerConfig) -> bool:
    """Whether the directories were made for several processes: they may have come down to one."""
    return bool(used_nodes(Files(), config.log_dirs[0]))


def _console(given: Namespace, config: BrokerConfig) -> ConsoleChild | None:
    """Raises CannotRun where the console could not connect to the broker."""
    options = console_options(given, given.console, given.console_client)
    if options is None:
        return None
    listener = config.advertised_listeners[0]
    if listener.security_protocol is not SecurityProtocol.PLAINTEXT and given.console_client is None:
        fix = "name a file with security.protocol, ssl.truststore.location, sasl.mechanism … by --console-client"
        raise CannotRun(ExitCode.INVALID_CONFIG, f"the console needs settings to connect to {listener}: {fix}")
    return ConsoleChild(options)
