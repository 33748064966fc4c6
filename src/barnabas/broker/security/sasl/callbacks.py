"""Loads the classes of listener.name.NAME.MECHANISM.sasl.server.callback.handler.class, which know users that the broker does not have.

The value is the dotted path of a Python class that derives from the handler of its mechanism, or the name of Kafka's own handler. The
broker makes one instance for each listener and mechanism, calls `configure`, and calls the other methods in a thread: they may wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.broker.security.python_class import instance_of
from barnabas.broker.security.sasl.mechanism import MechanismSettings
from barnabas.broker.security.sasl.server_jaas import server_jaas
from barnabas.security.scram import ScramCredential

SETTING: Final = "sasl.server.callback.handler.class"


class CallbackHandler:
    """The base class of all handlers."""

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str]) -> None:
        """Called once, with the properties of the broker and the options of the JAAS text."""

    def close(self) -> None:
        """Called when the handler is no longer used."""


class PlainHandler(CallbackHandler):
    """For PLAIN:

    class Directory(PlainHandler):
        def authenticate(self, username, password):
            return ask_the_directory(username, password)
    """

    def authenticate(self, username: str, password: str) -> bool:
        """Whether that is the password of the user."""
        raise NotImplementedError


class ScramHandler(CallbackHandler):
    """For SCRAM-SHA-256 and SCRAM-SHA-512."""

    def credential(self, username: str) -> ScramCredential | None:
        """The credential of the user; None if there is no such user."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OAuthToken:
    """A token that is valid. `expires_ms` is wall time."""

    principal_name: str
    expires_ms: int


class OAuthHandler(CallbackHandler):
    """For OAUTHBEARER."""

    def validate(self, token: str) -> OAuthToken | None:
        """None if the token is not valid."""
        raise NotImplementedError


H = TypeVar("H", bound=CallbackHandler)


def load_handler(settings: MechanismSettings, kind: type[H], *kafkas: str) -> H | None:
    """The handler of a mechanism on a listener; None for `kafkas`, the names of the handler that Kafka uses by itself. Raises
    InvalidConfig."""
    key = settings.prefix + SETTING
    name = settings.config[key] if settings.config.is_set(key) else None
    if not name or name in kafkas:
        return None
    handler = instance_of(name, key, kind)
    jaas = server_jaas(settings.config, settings.listener_name, settings.name)
    handler.configure(dict(settings.config.properties), settings.name, {} if jaas is None else jaas.options)
    return handler
