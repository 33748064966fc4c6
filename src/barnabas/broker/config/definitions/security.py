"""TLS, principals, authorization and delegation tokens.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import (
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    STRING,
    BrokerConfigKey,
    key,
)
from barnabas.config_def import ListOf, OneOf, Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("authorizer.class.name", STRING, "", None, LOW, READ_ONLY,
        "The class that authorizes requests: one of Kafka's names, or the dotted path of a Python class. Without one every "
        "request is allowed."),
    key("principal.builder.class", CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        None, MEDIUM, PER_BROKER,
        "The class that makes a principal of an authenticated connection."),
    key("security.providers", STRING, None, None, LOW, READ_ONLY,
        "Security providers, most wanted first."),
    key("connections.max.reauth.ms", LONG, 0, None, MEDIUM, READ_ONLY,
        "How long a SASL session lasts before the client must authenticate again; 0 means without end."),
    key("delegation.token.secret.key", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The secret that signs delegation tokens, the same on all brokers. Without one there are no tokens."),
    key("delegation.token.max.lifetime.ms", LONG, 604_800_000, Range(1), MEDIUM, READ_ONLY,
        "After this time a delegation token cannot be renewed."),
    key("delegation.token.expiry.time.ms", LONG, 86_400_000, Range(1), MEDIUM, READ_ONLY,
        "How long a delegation token is valid until it is renewed."),
    key("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, Range(1), LOW, READ_ONLY,
        "How often expired delegation tokens are removed."),
    key("ssl.protocol", STRING, "TLSv1.3", None, MEDIUM, PER_BROKER,
        "The TLS protocol a context is made with."),
    key("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ListOf(), MEDIUM, PER_BROKER,
        "The TLS versions connections may use."),
    key("ssl.provider", STRING, None, None, MEDIUM, PER_BROKER,
        "The security provider for TLS."),
    key("ssl.cipher.suites", LIST, (), ListOf(), MEDIUM, PER_BROKER,
        "The cipher suites connections may use; none named means all that are built in."),
    key("ssl.client.auth", STRING, "none", OneOf(("required", "requested", "none")), MEDIUM, PER_BROKER,
        "Whether clients must, may or need not show a certificate."),
    key("ssl.endpoint.identification.algorithm", STRING, "https", None, LOW, PER_BROKER,
        "How the name of a server is checked against its certificate; empty turns it off."),
    key("ssl.engine.factory.class", CLASS, None, None, LOW, PER_BROKER,
        "The class that makes TLS engines."),
    key("ssl.key.password", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "Password of the private key."),
    key("ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM, PER_BROKER,
        "Algorithm of the key manager."),
    key("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "The certificate chain as PEM text."),
    key("ssl.keystore.key", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "The private key as PEM text."),
    key("ssl.keystore.location", STRING, None, None, MEDIUM, PER_BROKER,
        "The file with the private key and the certificate."),
    key("ssl.keystore.password", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "Password of that file."),
    key("ssl.keystore.type", STRING, "JKS", None, MEDIUM, PER_BROKER,
        "Format of that file: PEM or PKCS12. JKS stands for either: the content says which. Files in Java's own format are refused."),
    key("ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW, READ_ONLY,
        "Rules that make a user name of the distinguished name in a certificate."),
    key("ssl.secure.random.implementation", STRING, None, None, LOW, PER_BROKER,
        "The random generator for TLS."),
    key("ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM, PER_BROKER,
        "Algorithm of the trust manager."),
    key("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "Trusted certificates as PEM text."),
    key("ssl.truststore.location", STRING, None, None, MEDIUM, PER_BROKER,
        "The file with trusted certificates."),
    key("ssl.truststore.password", PASSWORD, None, None, MEDIUM, PER_BROKER,
        "Password of that file."),
    key("ssl.truststore.type", STRING, "JKS", None, MEDIUM, PER_BROKER,
        "Format of that file: PEM or PKCS12. JKS stands for either: the content says which. Files in Java's own format are refused."),
    key("ssl.allow.dn.changes", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether a reloaded certificate may have another distinguished name."),
    key("ssl.allow.san.changes", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether a reloaded certificate may have other alternative names."),
)
# fmt: on
