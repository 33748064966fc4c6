"""PLAIN (RFC 4616): the client sends user and password. Only for listeners with TLS, because the password is sent in clear."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from barnabas.broker.security.sasl.callbacks import PlainHandler, load_handler
from barnabas.broker.security.sasl.mechanism import MechanismSettings
from barnabas.broker.security.sasl.plain_users import plain_users
from barnabas.security.errors import SaslAuthentication

KAFKAS_HANDLER: Final = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
_FIELDS: Final = 3

_log = logging.getLogger(__name__)


class PasswordCheck(Protocol):
    """The users of the configuration, or a PlainHandler."""

    def authenticate(self, username: str, password: str) -> bool: ...


class Users:
    """A user that does not exist takes the same time as a wrong password. Holds keyed hashes instead of the passwords."""

    def __init__(self, passwords: Mapping[str, str], secret: bytes) -> None:
        self._secret = secret
        self._hashes = {name: self._hash(password) for name, password in passwords.items()}
        self._unknown = self._hash("")  # no client can send the empty password

    def authenticate(self, username: str, password: str) -> bool:
        return hmac.compare_digest(self._hash(password), self._hashes.get(username, self._unknown))

    def _hash(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


class Plain:
    """`blocks` says that `users` may wait for a server."""

    def __init__(self, users: PasswordCheck, blocks: bool = False) -> None:
        self._users = users
        self.blocks = blocks

    def begin(self) -> PlainExchange:
        return PlainExchange(self._users)

    async def start(self) -> None:
        """Nothing to do: the users are in the configuration."""

    async def close(self) -> None:
        if isinstance(self._users, PlainHandler):
            self._users.close()


class PlainExchange:
    def __init__(self, users: PasswordCheck) -> None:
        self._users = users
        self.is_complete = False
        self.authorization_id = ""
        self.is_token = False
        self.credential_expires_ms: int | None = None

    def evaluate(self, response: bytes) -> bytes:
        """Raises SaslAuthentication, with Kafka's texts."""
        fields = response.decode("utf-8", "replace").split("\0", _FIELDS)
        if len(fields) != _FIELDS:
            raise SaslAuthentication(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}")
        authorization_id, username, password = fields
        if not username:
            raise SaslAuthentication("Authentication failed: username not specified")
        if not password:
            raise SaslAuthentication("Authentication failed: password not specified")
        if not self._is_password(username, password):
            raise SaslAuthentication("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != username:
            raise SaslAuthentication("Authentication failed: Client requested an authorization id that is different from username")
        self.authorization_id = username
        self.is_complete = True
        return b""

    def _is_password(self, username: str, password: str) -> bool:
        try:
            return self._users.authenticate(username, password) is True
        except SaslAuthentication:
            raise
        except Exception as error:  # of a handler; its text may have the password
            _log.error("The callback handler of PLAIN has failed with %s", type(error).__name__)
            raise SaslAuthentication("Authentication failed: credentials for user could not be verified") from None


def mechanism(settings: MechanismSettings) -> Plain:
    handler = load_handler(settings, PlainHandler, KAFKAS_HANDLER)
    if handler is not None:
        return Plain(handler, blocks=True)
    return Plain(Users(plain_users(settings.config, settings.listener_name), settings.secret))
