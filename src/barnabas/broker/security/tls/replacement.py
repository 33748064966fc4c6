"""Whether a certificate may replace another on an open listener: Kafka's rules of SslFactory.

Clients verify a broker by its names, so these stay. Brokers verify each other, so the old and the new certificate must be trusted by the
trust store that the other has meanwhile.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from barnabas.broker.security.tls.listener_tls import ListenerTls
from barnabas.config_def import InvalidConfig
from barnabas.security.distinguished_name import subject_of

if TYPE_CHECKING:
    from cryptography import x509


def require_replaceable(old: ListenerTls, new: ListenerTls, allows_dn_changes: bool, allows_san_changes: bool) -> None:
    """Raises InvalidConfig, in Kafka's words."""
    if old.key is None or new.key is None:
        return  # contexts of ssl.engine.factory.class cannot be compared
    if not allows_dn_changes:
        before, after = _subject(old.key.certificate), _subject(new.key.certificate)
        if before.lower() != after.lower():
            raise InvalidConfig(
                f"Keystore DistinguishedName does not match:  existing={{DN={before}}}, new={{DN={after}}}; "
                "ssl.allow.dn.changes=true allows it"
            )
    if not allows_san_changes:
        missing = _alternative_names(old.key.certificate) - _alternative_names(new.key.certificate)
        if missing:
            raise InvalidConfig(
                f"Keystore SubjectAltNames do not match:  the new certificate does not have {', '.join(sorted(missing))}; "
                "ssl.allow.san.changes=true allows it"
            )
    if not _has_trust_store(old) and _has_trust_store(new):
        raise InvalidConfig("Cannot add SSL truststore to an existing listener for which no truststore was configured.")


def require_mutual_trust(one: ListenerTls, other: ListenerTls) -> None:
    """Brokers with these contexts can connect to each other. Raises InvalidConfig."""
    for server, client in ((one, other), (other, one)):
        try:
            shake_hands(server.context, client.client_context())
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or error
            raise InvalidConfig(
                "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with those settings: "
                f"{reason}; ssl.truststore.* must trust the certificate of ssl.keystore.*, because the brokers use this listener"
            ) from None


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(8):  # a handshake takes three flights at most; with TLS 1.3 the server reads the client's certificate in the last
        waiting = []
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting.append(side)
        if not waiting:
            return
    raise ssl.SSLError("the handshake does not end")


def _subject(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return subject_of(certificate.public_bytes(Encoding.DER))


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return frozenset()
    return frozenset(str(getattr(name, "value", name)) for name in names)


def _has_trust_store(tls: ListenerTls) -> bool:
    settings = tls.config.settings
    return settings["ssl.truststore.location"] is not None or settings["ssl.truststore.certificates"] is not None
