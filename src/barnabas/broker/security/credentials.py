"""The credentials that this broker knows: SCRAM users and delegation tokens, as the metadata store has them.

SASL mechanisms look them up while they authenticate a client; nothing here waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram import ScramCredential


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """A delegation token as a SCRAM user. `expires_ms` is wall time: the expiry timestamp of the token."""

    credential: ScramCredential
    owner: KafkaPrincipal
    expires_ms: int


class Credentials:
    """By mechanism, then by user or token id."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, ScramCredential]] = {}
        self._tokens: dict[str, dict[str, TokenCredential]] = {}

    def user(self, mechanism: str, name: str) -> ScramCredential | None:
        return self._users.get(mechanism, {}).get(name)

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """May have expired: the caller compares `expires_ms` with its clock."""
        return self._tokens.get(mechanism, {}).get(token_id)

    def set_user(self, mechanism: str, name: str, credential: ScramCredential | None) -> None:
        """None removes the user."""
        users = self._users.setdefault(mechanism, {})
        if credential is None:
            users.pop(name, None)
        else:
            users[name] = credential

    def set_token(self, mechanism: str, token_id: str, credential: TokenCredential | None) -> None:
        """None removes the token."""
        tokens = self._tokens.setdefault(mechanism, {})
        if credential is None:
            tokens.pop(token_id, None)
        else:
            tokens[token_id] = credential
