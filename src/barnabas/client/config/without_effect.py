"""Settings of Java's clients that these clients do not read. A value other than the default causes a warning."""

from __future__ import annotations

from typing import Final

_OF_JAVA: Final = (
    "sasl.login.class",
    "security.providers",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
)
_OF_KERBEROS: Final = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
)
# These clients do not sign assertions.
_OF_ASSERTIONS: Final = (
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
)
# The broker validates tokens, not the client.
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

WITHOUT_EFFECT: Final = frozenset((*_OF_JAVA, *_OF_KERBEROS, *_OF_ASSERTIONS, *_OF_TOKENS, *_OF_OTHER_CONSUMERS))
