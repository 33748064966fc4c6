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
        "The protocol for connections to brokers.",
    ),
    key("security.providers", _STRING, None, None, _LOW, "A setting of Java; not used here."),
)

SSL: Final[tuple[ConfigKey, ...]] = (
    key("ssl.cipher.suites", _LIST, (), None, _LOW, "Ciphers of TLS 1.2 to use, by OpenSSL's names; empty for OpenSSL's choice."),
    key("ssl.enabled.protocols", _LIST, ("TLSv1.2", "TLSv1.3"), None, _MEDIUM, "The TLS versions that may be used."),
    key("ssl.protocol", _STRING, "TLSv1.3", None, _MEDIUM, "The newest TLS version to use, if it is enabled."),
    key(
        "ssl.endpoint.identification.algorithm",
        _STRING,
        "https",
        None,
        _LOW,
        "https: the broker's certificate must match the host name of the connection; empty: no such check.",
    ),
    key(
        "ssl.engine.factory.class",
        _CLASS,
        None,
        None,
        _LOW,
        "A callable that returns an ssl.SSLContext; it replaces the other ssl settings.",
    ),
    key("ssl.key.password", _PASSWORD, None, None, _HIGH, "Password of the private key."),
    key("ssl.keymanager.algorithm", _STRING, "SunX509", None, _LOW, "A setting of Java; not used here."),
    key("ssl.keystore.certificate.chain", _PASSWORD, None, None, _HIGH, "The client's certificate chain, as PEM text."),
    key("ssl.keystore.key", _PASSWORD, None, None, _HIGH, "The client's private key, as PEM text (PKCS#8)."),
    key(
        "ssl.keystore.location",
        _STRING,
        None,
        None,
        _HIGH,
        "A PKCS12 or PEM file with the client's private key and certificate chain.",
    ),
    key("ssl.keystore.password", _PASSWORD, None, None, _HIGH, "Password of a PKCS12 key store; PEM files have none."),
    key(
        "ssl.keystore.type",
        _STRING,
        "JKS",
        None,
        _MEDIUM,
        "PKCS12 or PEM, recognised by the content of the file; the error for a JKS file has the command that converts it.",
    ),
    key("ssl.provider", _STRING, None, None, _MEDIUM, "A setting of Java; not used here."),
    key("ssl.secure.random.implementation", _STRING, None, None, _LOW, "A setting of Java; not used here."),
    key("ssl.trustmanager.algorithm", _STRING, "PKIX", None, _LOW, "A setting of Java; not used here."),
    key("ssl.truststore.certificates", _PASSWORD, None, None, _HIGH, "Trusted certificates, as PEM text."),
    key(
        "ssl.truststore.location",
        _STRING,
        None,
        None,
        _HIGH,
        "A PKCS12 or PEM file with trusted certificates; by default those of the system.",
    ),
    key("ssl.truststore.password", _PASSWORD, None, None, _HIGH, "Password of a PKCS12 trust store; PEM files have none."),
    key(
        "ssl.truststore.type",
        _STRING,
        "JKS",
        None,
        _MEDIUM,
        "PKCS12 or PEM, recognised by the content of the file; the error for a JKS file has the command that converts it.",
    ),
)

SASL: Final[tuple[ConfigKey, ...]] = (
    key("sasl.mechanism", _STRING, "GSSAPI", None, _MEDIUM, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI."),
    key("sasl.jaas.config", _PASSWORD, None, None, _MEDIUM, "`module required option=\"value\" …;`, as Java's login modules read it."),
    key("sasl.username", _STRING, None, None, _MEDIUM, "The user of PLAIN and SCRAM; it takes precedence over sasl.jaas.config."),
    key("sasl.password", _PASSWORD, None, None, _MEDIUM, "The password of sasl.username."),
    key("sasl.client.callback.handler.class", _CLASS, None, None, _MEDIUM, "A callable that returns (username, password)."),
    key("sasl.login.callback.handler.class", _CLASS, None, None, _MEDIUM, "A callable that returns an OAUTHBEARER token."),
    key("sasl.login.class", _CLASS, None, None, _MEDIUM, "A setting of Java; not used here."),
    key("sasl.login.connect.timeout.ms", _INT, None, None, _LOW, "The connect timeout to the token provider."),
    key("sasl.login.read.timeout.ms", _INT, None, None, _LOW, "The read timeout from the token provider."),
    key("sasl.login.refresh.buffer.seconds", _SHORT, 300, Range(0, 3600), _LOW, "A token is refreshed this long before it expires."),
    key("sasl.login.refresh.min.period.seconds", _SHORT, 60, Range(0, 900), _LOW, "The shortest time between two refreshes."),
    key("sasl.login.refresh.window.factor", _DOUBLE, 0.8, Range(0.5, 1.0), _LOW, "A token is refreshed after this part of its lifetime."),
    key("sasl.login.refresh.window.jitter", _DOUBLE, 0.05, Range(0.0, 0.25), _LOW, "The largest random fraction added to the factor."),
    key("sasl.login.retry.backoff.max.ms", _LONG, 10000, None, _LOW, "The longest wait between attempts to get a token."),
    key("sasl.login.retry.backoff.ms", _LONG, 100, None, _LOW, "The first wait between attempts to get a token."),
    key("sasl.kerberos.keytab", _STRING, None, None, _MEDIUM, "The keytab of the client; without it, the ticket cache of the user."),
    key("sasl.kerberos.principal", _STRING, None, None, _MEDIUM, "The principal in the keytab; without it, the first one."),
    key("sasl.kerberos.kinit.cmd", _STRING, "/usr/bin/kinit", None, _LOW, "A setting of Kerberos; not used here."),
    key("sasl.kerberos.min.time.before.relogin", _LONG, 60000, None, _LOW, "A setting of Kerberos; not used here."),
    key("sasl.kerberos.service.name", _STRING, None, None, _MEDIUM, "The service of the brokers' principals, such as kafka."),
    key("sasl.kerberos.ticket.renew.jitter", _DOUBLE, 0.05, None, _LOW, "A setting of Kerberos; not used here."),
    key("sasl.kerberos.ticket.renew.window.factor", _DOUBLE, 0.8, None, _LOW, "A setting of Kerberos; not used here."),
)  # fmt: skip

OAUTHBEARER: Final[tuple[ConfigKey, ...]] = (
    key("sasl.oauthbearer.token.endpoint.url", _STRING, None, None, _MEDIUM, "The source of tokens: https://…, or file:///…"),
    key("sasl.oauthbearer.scope", _STRING, None, None, _MEDIUM, "The scope to request."),
    key("sasl.oauthbearer.client.credentials.client.id", _STRING, None, None, _MEDIUM, "The client id of the client credentials grant."),
    key(
        "sasl.oauthbearer.client.credentials.client.secret",
        _PASSWORD,
        None,
        None,
        _MEDIUM,
        "The client secret of the client credentials grant.",
    ),
    key("sasl.oauthbearer.header.urlencode", _BOOLEAN, False, None, _LOW, "Whether id and secret are URL-encoded in the header."),
    key("sasl.oauthbearer.scope.claim.name", _STRING, "scope", None, _LOW, "The claim that holds the scope of a token."),
    key("sasl.oauthbearer.sub.claim.name", _STRING, "sub", None, _LOW, "The claim that holds the subject of a token."),
    key(
        "sasl.oauthbearer.jwt.retriever.class",
        _CLASS,
        None,
        None,
        _MEDIUM,
        "A callable that returns a token; used instead of the endpoint.",
    ),
    key("sasl.oauthbearer.jwt.validator.class", _CLASS, None, None, _MEDIUM, "A setting of brokers; not used here."),
    key(
        "sasl.oauthbearer.assertion.algorithm",
        _STRING,
        "RS256",
        OneOfAnyCase(("ES256", "RS256")),
        _MEDIUM,
        "A setting of the JWT bearer grant.",
    ),
    key("sasl.oauthbearer.assertion.claim.aud", _STRING, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.exp.seconds", _INT, 300, Range(0, 86400), _LOW, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.iss", _STRING, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.jti.include", _BOOLEAN, False, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.nbf.seconds", _INT, 60, Range(0, 3600), _LOW, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.claim.sub", _STRING, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.file", _STRING, None, None, _MEDIUM, "A file with a signed assertion for the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.private.key.file", _STRING, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.private.key.passphrase", _PASSWORD, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.assertion.template.file", _STRING, None, None, _MEDIUM, "A setting of the JWT bearer grant."),
    key("sasl.oauthbearer.clock.skew.seconds", _INT, 30, None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.expected.audience", _LIST, (), None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.expected.issuer", _STRING, None, None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _LONG, 3600000, None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", _LONG, 10000, None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", _LONG, 100, None, _LOW, "A setting of brokers; not used here."),
    key("sasl.oauthbearer.jwks.endpoint.url", _STRING, None, None, _MEDIUM, "A setting of brokers; not used here."),
)
