"""Settings of Java's clients that these clients accept and do not read, by reason. A value other than the default causes a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.security.settings_without_effect import ASSERTIONS, JAVA, JAVA_REASON, KERBEROS, KERBEROS_REASON

_OF_TOKENS: Final = (
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
)
_OF_OTHER_CONSUMERS: Final = (
    "internal.throw.on.fetch.stable.offset.unsupported",
    "share.acknowledgement.mode",
    "share.acquire.mode",
)

_BY_REASON: Final = {
    JAVA_REASON: JAVA,
    KERBEROS_REASON: KERBEROS,
    "these clients do not sign assertions: sasl.oauthbearer.assertion.file names a signed one": ASSERTIONS,
    "the broker validates tokens, not the client": _OF_TOKENS,
    "it is for share consumers and for tests of Kafka itself": _OF_OTHER_CONSUMERS,
}
WITHOUT_EFFECT: Final[Mapping[str, str]] = {name: reason for reason, names in _BY_REASON.items() for name in names}
