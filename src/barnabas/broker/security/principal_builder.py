"""The principal of an authenticated connection: Kafka's DefaultKafkaPrincipalBuilder, or the Python class of principal.builder.class.

The value of the setting is Kafka's class name or the dotted path of a class with the methods of `PrincipalBuilder`. The broker makes one
instance for each listener at its start, calls `configure` with the broker's properties, and `build` for each connection that has
authenticated.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.principals.kerberos_short_namer import KerberosName, KerberosShortNamer
from barnabas.broker.security.principals.ssl_principal_mapper import SslPrincipalMapper
from barnabas.broker.security.python_class import instance_of
from barnabas.endpoint import SecurityProtocol
from barnabas.security.distinguished_name import subject_of
from barnabas.security.kerberos import default_realm, gssapi_library, kerberos_reason
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

SETTING: Final = "principal.builder.class"
KAFKAS_CLASS: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuthenticationContext:
    """What the broker knows of a connection that has authenticated. `peer_certificate` is the DER certificate of the client, None if it
    has shown none. With SASL, `mechanism` and `authorization_id` are set."""

    security_protocol: SecurityProtocol
    listener_name: str
    client_address: str
    peer_certificate: bytes | None = None
    mechanism: str | None = None
    authorization_id: str | None = None


class PrincipalBuilder:
    """The base class for classes of principal.builder.class. It is called on the event loop and must not wait."""

    def configure(self, configs: dict[str, str]) -> None:
        """Called once, with the properties of the broker."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """The principal. Any exception closes the connection."""
        raise NotImplementedError


class DefaultPrincipalBuilder(PrincipalBuilder):
    """ANONYMOUS without authentication, the mapped name of the certificate with TLS, the authorization id with SASL."""

    def __init__(self, ssl_mapper: SslPrincipalMapper, short_namer: KerberosShortNamer) -> None:
        self._ssl_mapper = ssl_mapper
        self._short_namer = short_namer

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        if context.security_protocol.uses_sasl:
            return KafkaPrincipal(USER_TYPE, self._sasl_name(context))
        if context.security_protocol is SecurityProtocol.SSL and context.peer_certificate is not None:
            return KafkaPrincipal(USER_TYPE, self._ssl_mapper.name(subject_of(context.peer_certificate)))
        return ANONYMOUS

    def _sasl_name(self, context: AuthenticationContext) -> str:
        if not context.authorization_id:
            raise ValueError("A SASL connection has no authorization id")  # a mechanism that has not completed must not become a user
        if context.mechanism == "GSSAPI":
            return self._short_namer.short_name(KerberosName.parse(context.authorization_id))
        return context.authorization_id


def principal_builder(config: BrokerConfig, listener_name: str, uses_kerberos: bool = False) -> PrincipalBuilder:
    """The principal builder of a listener. `uses_kerberos` says that the listener enables GSSAPI. Raises InvalidConfig."""
    name = config.for_listener(listener_name, SETTING)
    if name == KAFKAS_CLASS:
        return DefaultPrincipalBuilder(
            SslPrincipalMapper(config.for_listener(listener_name, "ssl.principal.mapping.rules")),
            KerberosShortNamer(
                _default_realm(listener_name) if uses_kerberos else "",
                config.for_listener(listener_name, "sasl.kerberos.principal.to.local.rules"),
            ),
        )
    builder = instance_of(name, SETTING, PrincipalBuilder)
    builder.configure(dict(config.properties))
    return builder


def _default_realm(listener_name: str) -> str:
    """Empty if this machine has none: then the rule DEFAULT applies to no principal, as in Kafka."""
    library = gssapi_library(f"sasl.enabled.mechanisms of listener {listener_name}")
    try:
        return default_realm(library)
    except library.exceptions.GSSError as error:
        _log.warning(
            "Listener %s: Kerberos has no default realm (%s), so the rule DEFAULT of sasl.kerberos.principal.to.local.rules applies to no "
            "principal; set default_realm in krb5.conf",
            listener_name,
            kerberos_reason(error),
        )
        return ""
