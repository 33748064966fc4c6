"""OAUTHBEARER (RFC 7628): the client sends a token of an identity provider. SASL extensions (KIP-342) are accepted and not used."""

from __future__ import annotations

import asyncio
import re
from typing import Final, Protocol

from barnabas.broker.security.sasl.callbacks import SETTING as HANDLER_SETTING
from barnabas.broker.security.sasl.callbacks import OAuthHandler, OAuthToken, load_handler
from barnabas.broker.security.sasl.mechanism import MechanismSettings, SaslFailure
from barnabas.broker.security.sasl.oauthbearer.jwks_cache import JwksCache, jwks_cache
from barnabas.broker.security.sasl.oauthbearer.token_check import TokenCheck, UnsignedCheck, claim_rules
from barnabas.broker.security.sasl.server_jaas import server_jaas
from barnabas.config_def import InvalidConfig
from barnabas.security.errors import SaslAuthentication

UNSIGNED_SETTING: Final = "barnabas.sasl.oauthbearer.unsigned.tokens.allowed"
JWKS_SETTING: Final = "sasl.oauthbearer.jwks.endpoint.url"
VALIDATOR_SETTING: Final = "sasl.oauthbearer.jwt.validator.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
KAFKAS_HANDLERS: Final = (f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler", f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler")
KAFKAS_VALIDATORS: Final = (f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator")  # TokenCheck stands for both

_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01"
_FIRST: Final = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)")
_INVALID: Final = '{"status":"invalid_token"}'


class TokenValidator(Protocol):
    def validate(self, token: str) -> OAuthToken | None:
        """None if the token is not valid. The check logs the reason, without the token."""


class OAuthBearer:
    """`keys` are refreshed while the mechanism is in use; None if the check needs none."""

    def __init__(self, check: TokenValidator, keys: JwksCache | None = None, blocks: bool = False) -> None:
        self._check = check
        self._keys = keys
        self._refreshing: asyncio.Task[None] | None = None
        self.blocks = blocks

    def begin(self) -> OAuthExchange:
        return OAuthExchange(self._check)

    async def start(self) -> None:
        if self._keys is not None:
            await self._keys.load()
            self._refreshing = asyncio.ensure_future(self._keys.keep_fresh())

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        if isinstance(self._check, OAuthHandler):
            self._check.close()


class OAuthExchange:
    def __init__(self, check: TokenValidator) -> None:
        self._check = check
        self._is_refused = False
        self.is_complete = False
        self.authorization_id = ""
        self.is_token = False
        self.credential_expires_ms: int | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self._is_refused:  # the client has acknowledged the reason
            raise SaslAuthentication(_INVALID)
        authorization_id, token = _parsed(response)
        checked = self._check.validate(token)
        if checked is None:
            self._is_refused = True
            return _INVALID.encode()
        if authorization_id and authorization_id != checked.principal_name:
            raise SaslAuthentication(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different from the token's "
                f"principal name ({checked.principal_name})"
            )
        self.authorization_id = checked.principal_name
        self.credential_expires_ms = checked.expires_ms
        self.is_complete = True
        return b""


def _parsed(response: bytes) -> tuple[str, str]:
    """The authorization id, which may be empty, and the token."""
    match = _FIRST.fullmatch(response.decode("utf-8", "replace"))
    if match is None:
        raise SaslFailure("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match[2].split("\x01") if pair)
    if "auth" not in pairs:
        raise SaslFailure("Invalid OAUTHBEARER client first message: 'auth' not specified")
    auth = _AUTH.fullmatch(pairs["auth"])
    if auth is None or auth[1].lower() != "bearer":
        raise SaslFailure("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    return (match[1] or "").replace("=2C", ",").replace("=3D", "="), auth[2]


def mechanism(settings: MechanismSettings) -> OAuthBearer:
    """Raises InvalidConfig if tokens cannot be checked: an unsigned token is no proof of an identity."""
    server_jaas(settings.config, settings.listener_name, settings.name)
    handler = load_handler(settings, OAuthHandler, *KAFKAS_HANDLERS)
    if handler is not None:
        return OAuthBearer(handler, blocks=True)
    if (validator := settings.value(VALIDATOR_SETTING)) not in KAFKAS_VALIDATORS:
        raise InvalidConfig(
            f"Listener {settings.listener_name}: {VALIDATOR_SETTING} is {validator}, which is not loaded here, so that its checks would be "
            f"missing: derive a Python class from {OAuthHandler.__module__}.OAuthHandler and name it in {settings.prefix}{HANDLER_SETTING}"
        )
    has_keys, allows_unsigned = bool(settings.value(JWKS_SETTING)), bool(settings.value(UNSIGNED_SETTING))
    if has_keys and allows_unsigned:
        raise InvalidConfig(
            f"Listener {settings.listener_name} has both {JWKS_SETTING} and {UNSIGNED_SETTING}=true, with which anybody can write a token: "
            f"remove {UNSIGNED_SETTING}"
        )
    if allows_unsigned:
        return OAuthBearer(UnsignedCheck(claim_rules(settings, is_signed=False), settings.clock))
    if not has_keys:
        raise InvalidConfig(
            f"Listener {settings.listener_name} enables OAUTHBEARER and has no keys to check tokens with: set {JWKS_SETTING} to the key "
            "set of the identity provider, a file: or a URL of barnabas.sasl.oauthbearer.allowed.urls"
        )
    keys = jwks_cache(settings, settings.value(JWKS_SETTING))
    return OAuthBearer(TokenCheck(claim_rules(settings, is_signed=True), keys, settings.clock), keys)
