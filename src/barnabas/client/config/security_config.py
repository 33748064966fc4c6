"""The settings of TLS and SASL that all clients share, with Kafka's names and defaults."""

from __future__ import annotations

from typing import Final

from barnabas.client.config.config import key
from barnabas.config_def import ConfigKey, Importance, OneOfAnyCase, Range, Type

_STRING, _INT, _LONG, _SHORT, _DOUBLE = Type.STRING, Type.INT, Type.LONG, Type.SHORT, Type.DOUBLE
_LIST, _CLASS, _PASSWORD, _BOOLEAN = Type.LIST, Type.CLASS, Type.PASSWORD, Type.BOOLEAN
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

SECURITY: Final[tuple[ConfigKey, ...]] = (
    key(
        "security.protocol",
        _STRING,
        "PLAINTEXT",
        OneOfAnyCase(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
        _MEDIUM,
        "What is spoken to brokers.",
    ),
    key("security.providers", _STRING, None, None, _LOW, "Of Java's security; not used here."),
)

SSL: Final[tuple[ConfigKey, ...]] = (
    key("ssl.cipher.suites", _LIST, (), None, _LOW, "Ciphers of TLS 1.2 to use, by OpenSSL's names; empty for OpenSSL's choice."),
    key("ssl.enabled.protocols", _LIST, ("TLSv1.2", "TLSv1.3"), None, _MEDIUM, "Versions of TLS that may be spoken."),
    key("ssl.protocol", _STRING, "TLSv1.3", None, _MEDIUM, "The newest version to speak, if it is enabled."),
    key(
        "ssl.endpoint.identification.algorithm",
        _STRING,
        "https",
        None,
        _LOW,
        "https: the broker's certificate must be of the host we connect to; empty: it need not.",
    ),
    key("ssl.engine.factory.class", _CLASS, None, None, _LOW, "A callable that gives an ssl.SSLContext, in place of the settings above."),
    key("ssl.key.password", _PASSWORD, None, None, _HIGH, "Password of the private key."),
    key("ssl.keymanager.algorithm", _STRING, "SunX509", None, _LOW, "Of Java; not used here."),
    key("ssl.keystore.certificate.chain", _PASSWORD, None, None, _HIGH, "Our certificate and its chain, as PEM text."),
    key("ssl.keystore.key", _PASSWORD, None, None, _HIGH, "Our private key, as PEM text (PKCS#8)."),
    key("ssl.keystore.location", _STRING, None, None, _HIGH, "A PEM file with our private key and certificate chain."),
    key("ssl.keystore.password", _PASSWORD, None, None, _HIGH, "Password of that file; PEM files have none of their own."),
    key("ssl.keystore.type", _STRING, "JKS", None, _MEDIUM, "PEM is read; JKS and PKCS12 are refused with the way to convert them."),
    key("ssl.provider", _STRING, None, None, _MEDIUM, "Of Java; not used here."),
    key("ssl.secure.random.implementation", _STRING, None, None, _LOW, "Of Java; not used here."),
    key("ssl.trustmanager.algorithm", _STRING, "PKIX", None, _LOW, "Of Java; not used here."),
    key("ssl.truststore.certificates", _PASSWORD, None, None, _HIGH, "Certificates to trust, as PEM text."),
    key("ssl.truststore.location", _STRING, None, None, _HIGH, "A PEM file with certificates to trust; without one, those of the system."),
    key("ssl.truststore.password", _PASSWORD, None, None, _HIGH, "Password of that file; PEM files have none."),
    key("ssl.truststore.type", _STRING, "JKS", None, _MEDIUM, "PEM is read; JKS and PKCS12 are refused with the way to convert them."),
)

SASL: Final[tuple[ConfigKey, ...]] = (
    key("sasl.mechanism", _STRING, "GSSAPI", None, _MEDIUM, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."),
    key("sasl.jaas.config", _PASSWORD, None, None, _MEDIUM, "`module required option=\"value\" …;`, as Java's login modules read it."),
    key("sasl.username", _STRING, None, None, _MEDIUM, "The user of PLAIN and SCRAM; shorter than sasl.jaas.config, which it goes before."),
    key("sasl.password", _PASSWORD, None, None, _MEDIUM, "The password of that user."),
    key("sasl.client.callback.handler.class", _CLASS, None, None, _MEDIUM, "A callable that gives (username, password) when asked."),
    key("sasl.login.callback.handler.class", _CLASS, None, None, _MEDIUM, "A callable that gives an OAUTHBEARER token when one is needed."),
    key("sasl.login.class", _CLASS, None, None, _MEDIUM, "Of Java; not used here."),
    key("sasl.login.connect.timeout.ms", _INT, None, None, _LOW, "For connecting to the provider of tokens."),
    key("sasl.login.read.timeout.ms", _INT, None, None, _LOW, "For reading from the provider of tokens."),
    key("sasl.login.refresh.buffer.seconds", _SHORT, 300, Range(0, 3600), _LOW, "So long before a token ends it is to be refreshed."),
    key("sasl.login.refresh.min.period.seconds", _SHORT, 60, Range(0, 900), _LOW, "At least so long between two refreshes."),
    key("sasl.login.refresh.window.factor", _DOUBLE, 0.8, Range(0.5, 1.0), _LOW, "The part of a token's life after which it is refreshed."),
    key("sasl.login.refresh.window.jitter", _DOUBLE, 0.05, Range(0.0, 0.25), _LOW, "The largest random part added to that."),
    key("sasl.login.retry.backoff.max.ms", _LONG, 10000, None, _LOW, "The longest wait between tries to get a token."),
    key("sasl.login.retry.backoff.ms", _LONG, 100, None, _LOW, "The first wait between tries to get a token."),
    key("sasl.kerberos.kinit.cmd", _STRING, "/usr/bin/kinit", None, _LOW, "Of Kerberos; not used here."),
    key("sasl.kerberos.min.time.before.relogin", _LONG, 60000, None, _LOW, "Of Kerberos; not used here."),
    key("sasl.kerberos.service.name", _STRING, None, None, _MEDIUM, "Of Kerberos; not used here."),
    key("sasl.kerberos.ticket.renew.jitter", _DOUBLE, 0.05, None, _LOW, "Of Kerberos; not used here."),
    key("sasl.kerberos.ticket.renew.window.factor", _DOUBLE, 0.8, None, _LOW, "Of Kerberos; not used here."),
)  # fmt: skip

OAUTHBEARER: Final[tuple[ConfigKey, ...]] = (
    key("sasl.oauthbearer.token.endpoint.url", _STRING, None, None, _MEDIUM, "Where tokens come from: https://…, or file:///…"),
    key("sasl.oauthbearer.scope", _STRING, None, None, _MEDIUM, "The scope to ask for."),
    key("sasl.oauthbearer.client.credentials.client.id", _STRING, None, None, _MEDIUM, "The client id of the client credentials grant."),
    key("sasl.oauthbearer.client.credentials.client.secret", _PASSWORD, None, None, _MEDIUM, "The secret of that client."),
    key("sasl.oauthbearer.header.urlencode", _BOOLEAN, False, None, _LOW, "Whether id and secret are URL-encoded in the header."),
    key("sasl.oauthbearer.scope.claim.name", _STRING, "scope", None, _LOW, "The claim of a token that has its scope."),
    key("sasl.oauthbearer.sub.claim.name", _STRING, "sub", None, _LOW, "The claim of a token that has its subject."),
    key("sasl.oauthbearer.jwt.retriever.class", _CLASS, None, None, _MEDIUM, "A callable that gives a token; before the endpoint."),
    key("sasl.oauthbearer.jwt.validator.class", _CLASS, None, None, _MEDIUM, "Of brokers; not used here."),
    key("sasl.oauthbearer.assertion.algorithm", _STRING, "RS256", OneOfAnyCase(("ES256", "RS256")), _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.aud", _STRING, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.exp.seconds", _INT, 300, Range(0, 86400), _LOW, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.iss", _STRING, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.jti.include", _BOOLEAN, False, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.nbf.seconds", _INT, 60, Range(0, 3600), _LOW, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.sub", _STRING, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.file", _STRING, None, None, _MEDIUM, "A file with a signed assertion, for the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.private.key.file", _STRING, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.private.key.passphrase", _PASSWORD, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.template.file", _STRING, None, None, _MEDIUM, "Of the JWT bearer grant."),
    key("sasl.oauthbearer.clock.skew.seconds", _INT, 30, None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.expected.audience", _LIST, (), None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.expected.issuer", _STRING, None, None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _LONG, 3600000, None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", _LONG, 10000, None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", _LONG, 100, None, _LOW, "Of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.url", _STRING, None, None, _MEDIUM, "Of brokers; not used here."),
)
