"""The security settings of Kafka that neither brokers nor clients read: they are about Java, kinit or signing. Both warn of them."""

from __future__ import annotations

from typing import Final

JAVA: Final = (
    "sasl.login.class",
    "security.providers",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
)
JAVA_REASON: Final = "it names classes or algorithms of Java"
KERBEROS: Final = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
)
KERBEROS_REASON: Final = "MIT Kerberos renews the tickets of a keytab by itself, without kinit"
ASSERTIONS: Final = (
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
