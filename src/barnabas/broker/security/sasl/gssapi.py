"""GSSAPI (RFC 4752): a client proves its Kerberos principal with a ticket for the service of this broker.

The keytab of the broker is in the JAAS text of the listener, or in `barnabas.sasl.kerberos.keytab`. As in Kafka, no security layer is
offered, and the identity of the client is the principal of its ticket: an authorization id that the client sends is ignored.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.config.listeners import config_prefix
from barnabas.broker.security.sasl.mechanism import MechanismSettings, SaslFailure
from barnabas.broker.security.sasl.server_jaas import server_jaas
from barnabas.config_def import InvalidConfig
from barnabas.security.kerberos import LAYERS, NO_LAYER, KerberosLogin, gssapi_library, kerberos_reason

KEYTAB: Final = "barnabas.sasl.kerberos.keytab"
PRINCIPAL: Final = "barnabas.sasl.kerberos.principal"


class Gssapi:
    """`credentials` are those of the broker's service, from its keytab. The library reads that file again for each client, so a replaced
    keytab is used at once."""

    blocks = True  # the keytab and the replay cache are files

    def __init__(self, library: Any, credentials: Any) -> None:
        self.library = library
        self._credentials = credentials

    def begin(self) -> GssapiExchange:
        return GssapiExchange(self.library.SecurityContext(creds=self._credentials, usage="accept"), self.library.exceptions.GSSError)

    async def start(self) -> None:
        """Nothing to do: the keytab was read when the mechanism was made."""

    async def close(self) -> None:
        """Nothing to do."""


class GssapiExchange:
    """Tokens until the context is established, then the offer of no security layer, then its acceptance."""

    def __init__(self, context: Any, library_error: type[Exception]) -> None:
        self._context = context
        self._library_error = library_error
        self._has_offered = False
        self.is_complete = False
        self.authorization_id = ""
        self.is_token = False
        self.credential_expires_ms: int | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self.is_complete:
            raise SaslFailure("The client sends a token after the exchange is complete")
        try:
            if not self._context.complete:
                return self._establish(response)
            return self._accept(response) if self._has_offered else self._offer(response)
        except self._library_error as error:
            raise SaslFailure(f"The token of GSSAPI is not valid: {kerberos_reason(error)}") from None

    def _establish(self, response: bytes) -> bytes:
        token: bytes | None = self._context.step(response)
        return self._offer(b"") if self._context.complete and not token else token or b""

    def _offer(self, response: bytes) -> bytes:
        if response:
            raise SaslFailure("The client sends a token before it knows the security layers")
        self._has_offered = True
        offer: bytes = self._context.wrap(LAYERS, False).message
        return offer

    def _accept(self, response: bytes) -> bytes:
        chosen: bytes = self._context.unwrap(response).message
        if len(chosen) < len(LAYERS) or chosen[0] != NO_LAYER:
            raise SaslFailure("The client chooses a security layer that was not offered")
        self.authorization_id = str(self._context.initiator_name)
        self.is_complete = True
        return b""


def mechanism(settings: MechanismSettings) -> Gssapi:
    """Raises InvalidConfig."""
    library = gssapi_library(f"sasl.enabled.mechanisms of listener {settings.listener_name}")
    login = _login(settings)
    if login.keytab is None or login.principal is None:
        raise InvalidConfig(
            f"Listener {settings.listener_name} enables GSSAPI and has no keytab: set {KEYTAB} and {PRINCIPAL}, or keyTab and principal in "
            f"{config_prefix(settings.listener_name)}gssapi.sasl.jaas.config, or remove GSSAPI from sasl.enabled.mechanisms"
        )
    login.require_readable_keytab(f"GSSAPI of listener {settings.listener_name}")
    try:
        name = library.Name(login.principal, library.NameType.kerberos_principal)
        mechanisms = [library.MechType.kerberos]
        credentials = library.Credentials(name=name, usage="accept", mechs=mechanisms, store={"keytab": login.keytab})
    except library.exceptions.GSSError as error:
        raise InvalidConfig(
            f"GSSAPI of listener {settings.listener_name} cannot use {login.principal} of the keytab {login.keytab} "
            f"({kerberos_reason(error)}): klist -k shows the principals of a keytab"
        ) from None
    return Gssapi(library, credentials)


def _login(settings: MechanismSettings) -> KerberosLogin:
    keytab = settings.config.for_listener(settings.listener_name, KEYTAB)
    if keytab is not None:
        return KerberosLogin(keytab, settings.config.for_listener(settings.listener_name, PRINCIPAL))
    jaas = server_jaas(settings.config, settings.listener_name, settings.name)
    return KerberosLogin() if jaas is None else KerberosLogin.of_jaas(jaas)
