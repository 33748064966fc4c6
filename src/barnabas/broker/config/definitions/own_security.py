"""Settings of Barnabas about security that Kafka does not have; their names begin with `barnabas.`

They replace what Kafka reads from a JAAS file or a system property of Java. DescribeConfigs shows them only where they are set.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import BOOLEAN, LIST, LONG, MEDIUM, PASSWORD, READ_ONLY, STRING, BrokerConfigKey, key
from barnabas.config_def import ListOf, Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("barnabas.sasl.inter.broker.password", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The password of this broker at the other brokers, by PLAIN or SCRAM.", hidden=True),
    key("barnabas.sasl.inter.broker.username", STRING, None, None, MEDIUM, READ_ONLY,
        "The user that this broker is at the other brokers, by PLAIN or SCRAM, instead of a JAAS text.", hidden=True),
    key("barnabas.sasl.oauthbearer.allowed.urls", LIST, (), ListOf(), MEDIUM, READ_ONLY,
        "The URLs that sasl.oauthbearer.jwks.endpoint.url may have, besides files. Java reads them from a system property.", hidden=True),
    key("barnabas.sasl.oauthbearer.unsigned.tokens.allowed", BOOLEAN, False, None, MEDIUM, READ_ONLY,
        "Accept unsigned tokens, which anybody can write, in OAUTHBEARER. For tests only.", hidden=True),
    key("barnabas.sasl.plain.users", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "Users of the SASL mechanism PLAIN, NAME:PASSWORD with commas between them, instead of a JAAS text.", hidden=True),
    key("barnabas.ssl.reload.interval.ms", LONG, 10_000, Range(0), MEDIUM, READ_ONLY,
        "How often the files of key and trust stores are compared, to use replaced certificates; 0 is never.", hidden=True),
    key("barnabas.sasl.kerberos.keytab", STRING, None, None, MEDIUM, READ_ONLY,
        "The keytab of a listener with GSSAPI, instead of a JAAS text.", hidden=True),
    key("barnabas.sasl.kerberos.principal", STRING, None, None, MEDIUM, READ_ONLY,
        "The principal of this broker in that keytab, such as kafka/host.example@EXAMPLE.", hidden=True),
    key("barnabas.zookeeper.sasl.jaas.config", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The login module of the section Client of a JAAS file: the user and password for ZooKeeper, by DIGEST-MD5.", hidden=True),
    key("barnabas.zookeeper.sasl.password", PASSWORD, None, None, MEDIUM, READ_ONLY,
        "The password for ZooKeeper, by DIGEST-MD5.", hidden=True),
    key("barnabas.zookeeper.sasl.username", STRING, None, None, MEDIUM, READ_ONLY,
        "The user for ZooKeeper, by DIGEST-MD5.", hidden=True),
)
# fmt: on
