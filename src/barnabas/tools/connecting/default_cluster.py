"""The cluster of a tool that was started without --bootstrap-server.

`$BARNABAS_BOOTSTRAP_SERVERS`, then `bootstrap.servers` in `$XDG_CONFIG_HOME/barnabas/client.properties`, then localhost:9092. The address
is put into the command line, and that file beside it where it holds more settings, so that each tool reads both as if they had been typed.
Kafka's names of the tools (`kafka-topics`) get no default: Kafka's scripts insist on an address.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.tools.command_line.failures import ToolError
from barnabas.tools.command_line.grammar import Grammar
from barnabas.tools.connecting.connect import BOOTSTRAP_SERVERS, load_properties

SERVERS_VARIABLE: Final = "BARNABAS_BOOTSTRAP_SERVERS"
LOCAL_SERVER: Final = "localhost:9092"
BOOTSTRAP_OPTION: Final = "--bootstrap-server"
# Options that give an address in another way, or that need no cluster.
_INSTEAD: Final = ("--bootstrap-controller", "--zookeeper", "--broker-list", "--validate-regex", "--help", "-h", "--version")
CLIENT_FILES: Final = ("--command-config", "--admin.config", "--consumer.config", "--producer.config", "--config-file")


@dataclass(frozen=True)
class DefaultCluster:
    servers: str
    origin: str  # shown on stderr; empty for localhost
    config_file: str | None = None  # the properties file with the settings for these servers
    unused_file: str = ""  # a properties file that was ignored because it names other servers, and those servers; shown on stderr


def client_properties_path(environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "barnabas", "client.properties")


def default_cluster(environ: Mapping[str, str]) -> DefaultCluster:
    """The settings of client.properties may hold a password: they are used only with the address in that file, or if it names no
    address."""
    path = client_properties_path(environ)
    settings = load_properties(path) if os.path.exists(path) else {}
    in_file = settings.pop(BOOTSTRAP_SERVERS, "").strip()
    in_variable = environ.get(SERVERS_VARIABLE, "").strip()
    servers = in_variable or in_file or LOCAL_SERVER
    origin = f"${SERVERS_VARIABLE}" if in_variable else path if in_file else ""
    if settings and in_file not in ("", servers):
        return DefaultCluster(servers, origin, unused_file=f"{path}, which are for {in_file}")
    return DefaultCluster(servers, origin, path if settings else None)


def with_default_cluster(
    grammar: Grammar, words: Sequence[str], environ: Mapping[str, str], *, runs_alone: bool = False, instead: Sequence[str] = ()
) -> tuple[list[str], str]:
    """Returns the words with an address added where the tool needs one, and a line that names it; otherwise the words unchanged and
    None. `instead` has options of the tool that name its clusters."""
    position = None if grammar.given(words).keys() & set(instead) else _position(grammar, words, runs_alone)
    if position is None:
        return list(words), ""
    given = grammar.given(words)
    known = grammar.known(words)
    own_file = next((given[name] for name in CLIENT_FILES if name in given), None)
    cluster = _of_file(own_file) or default_cluster(environ)
    added = [BOOTSTRAP_OPTION, cluster.servers]
    file_option = next((name for name in CLIENT_FILES if name in known), None)
    if cluster.config_file is not None and own_file is None and file_option is not None:
        added += [file_option, cluster.config_file]
    return [*words[:position], *added, *words[position:]], _told(cluster, file_option in added, own_file is not None)


def client_settings(grammar: Grammar, words: Sequence[str]) -> dict[str, str]:
    """The settings of the properties file that the command line names for the client; empty if it names none."""
    given = grammar.given(words)
    try:
        return load_properties(next((given[name] for name in CLIENT_FILES if name in given), None))
    except (ToolError, OSError):
        return {}  # the tool reports it


def _position(grammar: Grammar, words: Sequence[str], runs_alone: bool) -> int | None:
    """The index at which the address is inserted; None if the tool takes no address, has one already, or only shows its usage."""
    given = grammar.given(words)
    if BOOTSTRAP_OPTION in given or any(name in given for name in _INSTEAD) or _in_properties(words):
        return None
    if not runs_alone and (not words or (not given and not grammar.commands)):
        return None
    path = grammar.path(words)
    for depth, level in enumerate(path):
        if BOOTSTRAP_OPTION in level.options:
            return _after_commands(path[:depth], words)
    return None


def _after_commands(path: Sequence[Grammar], words: Sequence[str]) -> int:
    position = 0
    for grammar in path:
        position = next(index for index in range(position, len(words)) if words[index] in grammar.commands) + 1
    return position


def _in_properties(words: Sequence[str]) -> bool:
    """As in `--producer-props bootstrap.servers=…`."""
    return any(word.startswith(f"{BOOTSTRAP_SERVERS}=") or f"={BOOTSTRAP_SERVERS}=" in word for word in words)


def _of_file(path: str | None) -> DefaultCluster | None:
    """The settings of a file that the command line names; empty if it cannot be read, because the tool itself reports that."""
    try:
        servers = load_properties(path).get(BOOTSTRAP_SERVERS, "").strip()
    except (ToolError, OSError):
        return None
    return DefaultCluster(servers, str(path)) if servers else None


def _told(cluster: DefaultCluster, has_file: bool, has_own_file: bool) -> str:
    if not cluster.origin:
        settings = f", with the settings of {cluster.config_file}" if has_file else ""
        return f"barnabas: no --bootstrap-server and no ${SERVERS_VARIABLE}: using {cluster.servers}{settings}"
    settings = f", with the settings of {cluster.config_file}" if has_file and cluster.config_file != cluster.origin else ""
    if cluster.unused_file and not has_own_file:
        settings = f", without the settings of {cluster.unused_file}"
    return f"barnabas: no --bootstrap-server: using {cluster.servers} from {cluster.origin}{settings}"
