"""The JAAS text of a mechanism on a listener: `listener.name.NAME.MECHANISM.sasl.jaas.config`, as in Kafka.

A JAAS text without the prefix is the broker's own login as a client, and never used for a listener.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.listeners import config_prefix
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import Jaas, parse_jaas

_PACKAGE: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": (f"{_PACKAGE}.plain.PlainLoginModule",),
    "SCRAM-SHA-256": (f"{_PACKAGE}.scram.ScramLoginModule",),
    "SCRAM-SHA-512": (f"{_PACKAGE}.scram.ScramLoginModule",),
    "OAUTHBEARER": (f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",),
    "GSSAPI": ("com.sun.security.auth.module.Krb5LoginModule",),
}


def server_jaas(config: BrokerConfig, listener_name: str, mechanism: str) -> Jaas | None:
    """None if it is not set. Raises InvalidConfig, which names the setting and never shows its value."""
    name = f"{config_prefix(listener_name)}{mechanism.lower()}.sasl.jaas.config"
    if not config.is_set(name):
        return None
    try:
        jaas = parse_jaas(config[name])
    except InvalidConfig as error:
        raise InvalidConfig(f'{name} is wrong: {error}. Write it as LoginModule required option="value" …;') from None
    if jaas.module not in _MODULES[mechanism]:
        raise InvalidConfig(f"{name} names the login module {jaas.module}, and {mechanism} needs {' or '.join(_MODULES[mechanism])}")
    return jaas
