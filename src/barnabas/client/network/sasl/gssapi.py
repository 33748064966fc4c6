"""GSSAPI (RFC 4752): authentication with a Kerberos ticket for the broker's service. No security layer is negotiated, as in Kafka.

Every method may wait for the key distribution center: they are called in a thread.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import SaslAuthentication
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas
from barnabas.security.kerberos import LAYERS, NO_LAYER, KerberosLogin, gssapi_library, kerberos_reason

_JAAS: Final = "sasl.jaas.config"
_caches = itertools.count()


class Kerberos:
    """The login of a client, for all its connections. With a keytab, the library fetches tickets when they are needed, and again before
    they expire; they are kept in memory, apart from the ticket cache of the user."""

    def __init__(self, config: ClientConfig) -> None:
        """Raises InvalidConfig."""
        self._library = gssapi_library("sasl.mechanism")
        self._login = _login(config)
        self._login.require_readable_keytab("sasl.kerberos.keytab" if config["sasl.kerberos.keytab"] else _JAAS)
        service_name = self._login.service_name
        if not service_name:
            raise InvalidConfig("GSSAPI needs the name of the brokers' service: set sasl.kerberos.service.name, for example to kafka")
        self._service_name = service_name
        self._memory_cache = f"MEMORY:barnabas-{next(_caches)}"

    def begin(self, host: str) -> Gssapi:
        """A new exchange with the broker at a host. Raises SaslAuthentication."""
        library = self._library
        try:
            context = library.SecurityContext(
                name=library.Name(f"{self._service_name}@{host}", library.NameType.hostbased_service),
                creds=self._credentials(),
                flags=[library.RequirementFlag.mutual_authentication, library.RequirementFlag.integrity],
                mech=library.MechType.kerberos,
                usage="initiate",
            )
            return Gssapi(context, library.exceptions.GSSError, context.step() or b"")
        except library.exceptions.GSSError as error:
            raise SaslAuthentication(self._failure(host, error)) from None

    def _credentials(self) -> Any:
        library, login = self._library, self._login
        name = library.Name(login.principal, library.NameType.kerberos_principal) if login.principal else None
        store: dict[str, str] = {}
        if login.keytab is not None:
            store = {"client_keytab": login.keytab, "ccache": self._memory_cache}
        elif login.ticket_cache is not None:
            store = {"ccache": login.ticket_cache}
        return library.Credentials(name=name, usage="initiate", mechs=[library.MechType.kerberos], store=store or None)

    def _failure(self, host: str, error: Exception) -> str:
        source = f"the keytab {self._login.keytab}" if self._login.keytab else "the ticket cache (is there a ticket? see klist and kinit)"
        return f"Kerberos gives no ticket for {self._service_name}/{host} with {source}: {kerberos_reason(error)}"


class Gssapi:
    """One exchange. `first` is the first token."""

    def __init__(self, context: Any, library_error: type[Exception], first: bytes) -> None:
        self.is_done = False
        self._context = context
        self._library_error = library_error
        self._first = first

    def begin(self) -> bytes:
        return self._first

    def answer(self, challenge: bytes) -> bytes | None:
        if self.is_done:
            return None
        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            return self._choose_no_layer(self._context.unwrap(challenge).message)
        except self._library_error as error:
            raise SaslAuthentication(f"The broker's token of GSSAPI is not valid: {kerberos_reason(error)}") from None

    def _choose_no_layer(self, layers: bytes) -> bytes:
        """Without an authorization id: the broker takes the principal of the ticket."""
        if len(layers) != len(LAYERS) or not layers[0] & NO_LAYER:
            raise SaslAuthentication("The broker requires a security layer of GSSAPI, which is not supported: use SASL_SSL instead")
        self.is_done = True
        response: bytes = self._context.wrap(LAYERS, False).message
        return response


def _login(config: ClientConfig) -> KerberosLogin:
    login = KerberosLogin() if config[_JAAS] is None else KerberosLogin.of_jaas(parse_jaas(config[_JAAS]))
    return KerberosLogin(
        config["sasl.kerberos.keytab"] or login.keytab,
        config["sasl.kerberos.principal"] or login.principal,
        config["sasl.kerberos.service.name"] or login.service_name,
        login.ticket_cache,
    )
