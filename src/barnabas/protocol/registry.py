# Compiled by mypyc: src/compiled.toml lists this module.
"""The APIs by their keys: names, versions, header versions, and the classes of their messages.

`framing` looks up the API of a frame here, and the ApiVersions response is computed from it. Importing this module imports no message: a
class is imported when its API is first used, so that unused APIs do not slow the start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from barnabas.protocol import api_keys
from barnabas.protocol.message import Message

NOT_FLEXIBLE: Final = -1


class Api:
    """One API: its key, name and versions. The classes of its messages are imported at first use."""

    __slots__ = ("key", "name", "lowest_version", "highest_version", "stable_version", "first_flexible_version", "_request", "_response")  # noqa: RUF023

    def __init__(self, key: int, name: str, lowest: int, highest: int, stable: int, first_flexible: int) -> None:
        self.key = key
        self.name = name
        self.lowest_version = lowest
        self.highest_version = highest
        self.stable_version = stable  # the highest version that Kafka does not change any more
        self.first_flexible_version = first_flexible
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    def has_version(self, version: int) -> bool:
        return self.lowest_version <= version <= self.highest_version

    def is_offered(self, version: int) -> bool:
        """Whether clients may use the version. A version that Kafka may still change can be read and written, but is not offered."""
        return self.lowest_version <= version <= self.stable_version

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible_version != NOT_FLEXIBLE and version >= self.first_flexible_version

    def request_header_version(self, version: int) -> int:
        """2 with tagged fields, 1 with a client id, 0 without client id, in version 0 of ControlledShutdown."""
        if self.key == api_keys.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """1 with tagged fields, else 0. ApiVersions never has them: its client does not know yet which versions the broker supports."""
        return 1 if self.key != api_keys.API_VERSIONS and self.is_flexible(version) else 0

    @property
    def request(self) -> type[Message]:
        if self._request is None:
            self._request = _message_class(f"{self.name}Request", self._module("request"))
        return self._request

    @property
    def response(self) -> type[Message]:
        if self._response is None:
            self._response = _message_class(f"{self.name}Response", self._module("response"))
        return self._response

    def _module(self, kind: str) -> str:
        return f"{_MODULES[self.key]}_{kind}"

    def __repr__(self) -> str:
        return f"{self.name}({self.key}) v{self.lowest_version}-{self.highest_version}"


def _message_class(name: str, module: str) -> type[Message]:
    message_class: type[Message] = getattr(import_module(f"barnabas.protocol.messages.{module}"), name)
    return message_class


_MODULES: Final = {key: name.lower() for name, key in vars(api_keys).items() if isinstance(key, int)}
APIS: Final = {key: Api(key, *row) for key, row in api_keys.APIS.items()}
BY_NAME: Final = {api.name: api for api in APIS.values()}
