"""Checks a token of OAUTHBEARER, a JWT: its signature, and its claims against the settings.

Times are compared with the clock of the broker and not by PyJWT, which reads the clock of the machine.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.utils import base64url_decode

from barnabas.broker.clock import Clock
from barnabas.broker.security.sasl.callbacks import OAuthToken
from barnabas.broker.security.sasl.mechanism import MechanismSettings
from barnabas.broker.security.sasl.oauthbearer.jwks_cache import JwksCache
from barnabas.broker.security.sasl.oauthbearer.key_set import ALGORITHMS
from barnabas.config_def import InvalidConfig

_SECONDS_MAX: Final = 1 << 40  # some 35,000 years: a larger time is a mistake or an attack
_UNSIGNED_PARTS: Final = 3
_TRIMMED: Final = "".join(map(chr, range(0x21)))  # what Java's String.trim removes, and so Kafka from a subject

_log = logging.getLogger(__name__)


class InvalidToken(Exception):
    """The reason, without any part of the token."""


@dataclass(frozen=True)
class ClaimRules:
    """`issuer` and `audiences` are checked if they are set, as they are for signed tokens."""

    issuer: str | None
    audiences: tuple[str, ...]
    subject_claim: str
    scope_claim: str
    skew_seconds: int

    def checked(self, claims: Mapping[str, Any], now_ms: int) -> OAuthToken:
        """Raises InvalidToken."""
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("the issuer is not that of sasl.oauthbearer.expected.issuer")
        if self.audiences and not set(_texts(claims, "aud")) & set(self.audiences):
            raise InvalidToken("the audience is none of sasl.oauthbearer.expected.audience")
        expires_ms = _time_ms(claims, "exp")
        skew_ms = 1000 * self.skew_seconds
        if now_ms >= expires_ms + skew_ms:
            raise InvalidToken("it has expired")
        if _time_ms(claims, "iat") > now_ms + skew_ms:
            raise InvalidToken("it was issued in the future: compare the clocks, or raise sasl.oauthbearer.clock.skew.seconds")
        if "nbf" in claims and _time_ms(claims, "nbf") > now_ms + skew_ms:
            raise InvalidToken("it is not valid yet")
        if self.scope_claim in claims:
            _texts(claims, self.scope_claim)
        subject = claims.get(self.subject_claim)
        name = subject.strip(_TRIMMED) if isinstance(subject, str) else ""
        if not name.strip():
            raise InvalidToken("it has no subject: see sasl.oauthbearer.sub.claim.name")
        return OAuthToken(name, expires_ms)


class TokenCheck:
    """Accepts tokens that a key of the identity provider has signed."""

    def __init__(self, rules: ClaimRules, keys: JwksCache, clock: Clock) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock

    def validate(self, token: str) -> OAuthToken | None:
        try:
            return self._rules.checked(self._verified(token), self._clock.now_ms())
        except InvalidToken as reason:
            _log_refusal(reason)
            return None

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise InvalidToken("it is not a JWT") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise InvalidToken(f"its algorithm is none of {', '.join(ALGORITHMS)}")
        key = self._keys.key(key_id if isinstance(key_id, str) else None, algorithm)
        if key is None:
            raise InvalidToken("it is signed with a key that is not in the key set of sasl.oauthbearer.jwks.endpoint.url")
        try:
            verified = jwt.api_jws.decode(token, key, algorithms=[algorithm])
        except jwt.InvalidTokenError:
            raise InvalidToken("its signature is wrong") from None
        return _claims(verified)


class UnsignedCheck:
    """Accepts unsigned tokens, which anybody can write: for tests only."""

    def __init__(self, rules: ClaimRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        _log.warning("Unsigned tokens are accepted: barnabas.sasl.oauthbearer.unsigned.tokens.allowed is for tests only")

    def validate(self, token: str) -> OAuthToken | None:
        try:
            return self._rules.checked(self._claims(token), self._clock.now_ms())
        except InvalidToken as reason:
            _log_refusal(reason)
            return None

    def _claims(self, token: str) -> dict[str, Any]:
        parts = token.split(".")
        if len(parts) != _UNSIGNED_PARTS or parts[2]:
            raise InvalidToken("it is not an unsigned JWT")
        try:
            header, payload = (base64url_decode(part) for part in parts[:2])
        except ValueError:
            raise InvalidToken("it is not a JWT") from None
        if _claims(header).get("alg") != "none":
            raise InvalidToken("it is not an unsigned JWT")
        return _claims(payload)


def claim_rules(settings: MechanismSettings, is_signed: bool) -> ClaimRules:
    """Raises InvalidConfig if a signed token of another issuer or for another service would be accepted."""
    issuer, audiences = (
        settings.value("sasl.oauthbearer.expected.issuer"),
        tuple(settings.value("sasl.oauthbearer.expected.audience") or ()),
    )
    for name, value in (("issuer", issuer), ("audience", audiences)):
        if is_signed and not value:
            raise InvalidConfig(
                f"Listener {settings.listener_name} enables OAUTHBEARER without sasl.oauthbearer.expected.{name}: set it to the {name} of "
                "your tokens, or tokens for other services would be accepted"
            )
    return ClaimRules(
        issuer,
        audiences,
        settings.value("sasl.oauthbearer.sub.claim.name"),
        settings.value("sasl.oauthbearer.scope.claim.name"),
        settings.value("sasl.oauthbearer.clock.skew.seconds"),
    )


def _log_refusal(reason: InvalidToken) -> None:
    _log.info("A token of OAUTHBEARER is refused: %s", reason)


def _claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        raise InvalidToken("its claims are not JSON") from None
    if not isinstance(claims, dict):
        raise InvalidToken("its claims are not a JSON object")
    return claims


def _time_ms(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _SECONDS_MAX:
        raise InvalidToken(f"its claim {name} is missing, or no time")
    return int(value * 1000)


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims.get(name, [])
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in values):
        raise InvalidToken(f"its claim {name} is neither a string nor a list of strings")
    return values
