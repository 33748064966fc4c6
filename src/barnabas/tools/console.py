"""Serve the console, the web page of clusters: topics, messages, groups and brokers in a browser.

One cluster comes from --bootstrap-server, several from a console.toml. It only reads unless it is started with --console-write.
"""

from __future__ import annotations

import logging
import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.properties import parse_properties
from barnabas.tools.command_line.exit_codes import ExitCode
from barnabas.tools.connecting.default_cluster import LOCAL_SERVER
from barnabas.tools.running.console_child import DEFAULT_PORT, INSTALL, is_installed, port_number

if TYPE_CHECKING:
    from barnabas.console.config import ConsoleConfig
    from barnabas.console.messages.masks import Mask

INSTEAD_OF_ADDRESS: Final = ("--config",)  # the file names the clusters
CHILD_NICENESS: Final = 5  # beside a broker, which comes first


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    if not is_installed():
        return _refuse(f"the console is not installed: {INSTALL}")
    from barnabas.console.config import ConfigFault
    from barnabas.console.listening import PortInUse, inherited, listen
    from barnabas.console.serving import serve, url_of

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if given.exit_with_parent:
        from barnabas.console.parent import exit_with_parent

        exit_with_parent()
        os.nice(CHILD_NICENESS)
    try:
        config = _config(given)
        sockets = inherited(given.listen_fds) if given.listen_fds else listen(config.host, config.port)
    except ConfigFault as error:
        return _refuse(str(error))
    except PortInUse as error:
        return _refuse(f"{error.strerror}; name another port with --port", ExitCode.ADDRESS_UNAVAILABLE)
    if given.port == 0:
        config = _with_port(config, sockets[0].getsockname()[1])
    if sys.stderr.isatty() and not given.exit_with_parent:
        print(f"The console is at {url_of(config)}; stop it with Ctrl-C", file=sys.stderr, flush=True)
    serve(config, sockets)
    return 0


def build_parser() -> ArgumentParser:
    parser = ArgumentParser("barnabas console", description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the cluster; any Kafka; default: localhost:9092")
    parser.add_argument(
        "--command-config", metavar="FILE.properties", help="settings of its clients; with a password, everybody uses that user"
    )
    parser.add_argument("--config", metavar="console.toml", help="several clusters, and masks")
    parser.add_argument("--name", default="local", help="what the cluster of --bootstrap-server is called; default: %(default)s")
    parser.add_argument(
        "--metrics", action="append", default=[], metavar="URL", help="the metrics of a broker, for bytes in and out; repeatable"
    )
    parser.add_argument(
        "--host", default="localhost", help="the address to listen on; default: %(default)s, which only this machine reaches"
    )
    parser.add_argument("--port", type=port_number, default=DEFAULT_PORT, help="0 takes any that is free; default: %(default)s")
    parser.add_argument("--host-name", action="append", default=[], metavar="NAME", help="a name that browsers may use for it; repeatable")
    parser.add_argument("--behind-https", action="store_true", help="a proxy before it speaks HTTPS: cookies are only sent over that")
    parser.add_argument(
        "--console-write", action="store_true", help="let people change topics, groups, settings …; without it, it only reads"
    )
    parser.add_argument("--audit-log", metavar="FILE", help="changes and logins as JSON lines; default: standard error")
    parser.add_argument("--exit-with-parent", action="store_true", help=SUPPRESS)  # standard input is a pipe of the parent
    parser.add_argument("--listen-fds", type=int, nargs="+", default=[], help=SUPPRESS)  # sockets that the parent has opened
    return parser


def _config(given: Namespace) -> ConsoleConfig:
    """Raises ConfigFault."""
    from barnabas.console.config import ClusterConfig, ConfigFault, ConsoleConfig, read_console_file

    clusters: tuple[ClusterConfig, ...] = ()
    masks: tuple[Mask, ...] = ()
    host_names: tuple[str, ...] = ()
    if given.config is not None:
        clusters, masks, host_names = read_console_file(given.config)
        if given.bootstrap_server is not None or given.command_config is not None:
            raise ConfigFault("--config names the clusters: leave out --bootstrap-server and --command-config")
    else:
        client: dict[str, str] = {}
        if given.command_config is not None:
            try:
                with open(given.command_config, encoding="utf-8") as file:
                    client = parse_properties(file.read())
            except (OSError, ValueError) as error:
                raise ConfigFault(f"--command-config {given.command_config}: {error}") from None
        client["bootstrap.servers"] = given.bootstrap_server or client.get("bootstrap.servers") or LOCAL_SERVER
        clusters = (ClusterConfig(given.name, client, tuple(given.metrics)),)
    return ConsoleConfig(
        clusters,
        host=given.host,
        port=given.port,
        may_write=given.console_write,
        masks=masks,
        host_names=(*host_names, *given.host_name),
        scheme="https" if given.behind_https else "http",
        audit_file=given.audit_log,
    )


def _with_port(config: ConsoleConfig, port: int) -> ConsoleConfig:
    from dataclasses import replace

    return replace(config, port=port)


def _refuse(text: str, code: int = ExitCode.INVALID_CONFIG) -> int:
    print(f"barnabas: {text}", file=sys.stderr, flush=True)
    return code
