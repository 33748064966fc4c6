"""The credentials that this broker knows: SCRAM users and delegation tokens, as the metadata store has them.

SASL mechanisms look them up while they authenticate a client; nothing here waits.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram import ITERATIONS_MIN, SALT_BYTES, ScramCredential


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """A delegation token as a SCRAM user. `expires_ms` is wall time: the expiry timestamp of the token."""

    credential: ScramCredential
    owner: KafkaPrincipal
    expires_ms: int


@dataclass(frozen=True, slots=True)
class _TokenPassword:
    """What the SCRAM credentials of a token follow from. They are computed when a client uses the token: that takes milliseconds."""

    password: str = field(repr=False)
    owner: KafkaPrincipal
    expires_ms: int

    def credential(self, mechanism: str) -> TokenCredential:
        salt = secrets.token_bytes(SALT_BYTES)
        return TokenCredential(ScramCredential.of_password(mechanism, self.password, salt, ITERATIONS_MIN), self.owner, self.expires_ms)


class Credentials:
    """By mechanism, then by user or token id."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, ScramCredential]] = {}
        self._tokens: dict[str, dict[str, TokenCredential]] = {}
        self._token_passwords: dict[str, _TokenPassword] = {}

    def example(self, mechanism: str) -> ScramCredential | None:
        """The credential of any user: a challenge for an unknown user must look like those of the others."""
        return next(iter(self._users.get(mechanism, {}).values()), None)

    def user(self, mechanism: str, name: str) -> ScramCredential | None:
        return self._users.get(mechanism, {}).get(name)

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """May have expired: the caller compares `expires_ms` with its clock."""
        tokens = self._tokens.setdefault(mechanism, {})
        if token_id not in tokens and token_id in self._token_passwords:
            tokens[token_id] = self._token_passwords[token_id].credential(mechanism)
        return tokens.get(token_id)

    def set_user(self, mechanism: str, name: str, credential: ScramCredential | None) -> None:
        """None removes the user."""
        users = self._users.setdefault(mechanism, {})
        if credential is None:
            users.pop(name, None)
        else:
            users[name] = credential

    def set_token(self, mechanism: str, token_id: str, credential: TokenCredential) -> None:
        self._tokens.setdefault(mechanism, {})[token_id] = credential

    def set_token_password(self, token_id: str, password: str, owner: KafkaPrincipal, expires_ms: int) -> None:
        """A token with a password is a user of every mechanism."""
        self.remove_token(token_id)
        self._token_passwords[token_id] = _TokenPassword(password, owner, expires_ms)

    def remove_token(self, token_id: str) -> None:
        self._token_passwords.pop(token_id, None)
        for tokens in self._tokens.values():
            tokens.pop(token_id, None)
