"""From the options of a tool to a client: --bootstrap-server, --command-config, and properties given one by one.

The modules of the clients are imported when a tool opens one, so that `barnabas --help` and a mistyped option are answered at once.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError
from barnabas.properties import parse_properties
from barnabas.tools.command_line.failures import BadArgument, ClientNotMade, ConfigRefused, NoSuchFile, ToolError, Unreadable
from barnabas.tools.command_line.options import Option
from barnabas.tools.command_line.text import Waiting
from barnabas.tools.connecting.reachable import require_reachable, says_why_in_one_line

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.producer.producer import Producer

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_ADDRESS: Final = re.compile(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_UNREACHABLE: Final = ("Invalid url", "Invalid port", "No resolvable bootstrap", "Couldn't resolve")


def bootstrap_option(about: str = "REQUIRED: the broker to connect to, as host:port; several separated by commas.") -> Option:
    return Option("bootstrap-server", about, "required", described_as="server to connect to")


def command_config_option(about: str = "A properties file with settings of the admin client, such as those of security.") -> Option:
    return Option("command-config", about, "required", described_as="command config property file")


def load_properties(path: str | None) -> dict[str, str]:
    """The settings in a properties file; empty if `path` is None."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return parse_properties(file.read())
    except FileNotFoundError:
        raise NoSuchFile(path) from None
    except ValueError as error:
        raise BadArgument(f"{path}: {error}") from None


def read_text(path: str) -> str:
    """A whole small file, such as a plan in JSON."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Unreadable(f"Unable to read file {path}") from None
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not a text in UTF-8") from None


def key_values(pairs: Iterable[str]) -> dict[str, str]:
    """Parses `name=value` pairs; a name without `=` gets the empty value."""
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def open_admin(
    bootstrap: str | None, config_file: str | None = None, defaults: Mapping[str, Any] | None = None, /, **settings: Any
) -> Admin:
    """An admin client: `defaults` give way to the file, `settings` (dots written as `_`) do not; one that is None is not set."""
    from barnabas.client.admin.admin import Admin

    config = dict(defaults or {}) | load_properties(config_file)
    if bootstrap is not None:
        config[BOOTSTRAP_SERVERS] = bootstrap
    config |= {name.replace("_", "."): value for name, value in settings.items() if value is not None}
    require_reachable(config)
    made: Any = _made(Admin, config)
    return cast("Admin", PatientAdmin(made) if sys.stderr.isatty() else made)


class PatientAdmin:
    """An admin client that shows on a terminal what it is waiting for when a call takes long."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def __enter__(self) -> PatientAdmin:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._admin, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            with Waiting(name.replace("_", " ")):
                return method(*arguments, **keywords)

        return call


def open_producer(config: Mapping[str, Any]) -> Producer:
    from barnabas.client.producer.producer import Producer

    require_reachable(config)
    made: Producer = _made(Producer, config)
    return made


def open_consumer(config: Mapping[str, Any]) -> Consumer[Any, Any]:
    from barnabas.client.consumer.consumer import Consumer

    require_reachable(config)
    made: Consumer[Any, Any] = _made(Consumer, config)
    return made


def _made(kind: Any, config: Mapping[str, Any]) -> Any:
    from barnabas.client.config.config import SharedSettings

    try:
        client = kind(SharedSettings(config))  # client.properties may also be read by other programs
    except KafkaError as error:
        if str(error).startswith(_UNREACHABLE):
            raise ClientNotMade(kind.__name__, ConfigRefused(str(error))) from error
        if isinstance(error, InvalidConfig):
            raise ConfigRefused(str(error)) from error
        raise
    try:
        _check_resolvable(kind, config)
    except ClientNotMade:
        client.close()
        raise
    return client


def _check_resolvable(kind: Any, config: Mapping[str, Any]) -> None:
    """Kafka's clients resolve bootstrap.servers in their constructor and fail if no name resolves; ours resolve it at the first
    connection."""
    for setting in (BOOTSTRAP_SERVERS, "bootstrap.controllers"):
        given = config.get(setting)
        addresses = [_ADDRESS.fullmatch(address.strip()) for address in given.split(",")] if isinstance(given, str) and given else []
        if addresses and not any(match is None or _resolves(match[1]) for match in addresses):
            raise ClientNotMade(kind.__name__, ConfigRefused(f"No resolvable bootstrap urls given in {setting}"))


def _resolves(host: str) -> bool:
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def address_fault(addresses: str | None) -> str | None:
    """What is wrong with the value of --bootstrap-server, or None also where `require_reachable` says it in one line."""
    return None if (addresses or "").strip() and says_why_in_one_line() else validate_bootstrap(addresses)


def validate_bootstrap(addresses: str | None) -> str | None:
    """What is wrong with the value of --bootstrap-server, or None."""
    if not (addresses or "").strip():
        return "Error while validating the bootstrap address\n"
    if all(_ADDRESS.fullmatch(address) for address in str(addresses).rstrip(",").split(",")):
        return None
    return "Please provide valid host:port like host1:9091,host2:9092\n"
