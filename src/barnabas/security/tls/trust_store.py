"""The trusted certificates of Kafka's ssl.truststore.* settings: PEM and PKCS12."""

from __future__ import annotations

from barnabas.security.tls.settings import TlsSettings
from barnabas.security.tls.store_file import in_lines, is_pem, read_store_file


def read_trust_store(settings: TlsSettings) -> str | bytes | None:
    """The trusted certificates as OpenSSL takes them: PEM text, or DER one after the other. None if the settings name none."""
    location, certificates = settings["ssl.truststore.location"], settings["ssl.truststore.certificates"]
    if location is not None and certificates is not None:
        raise settings.invalid("Both ssl.truststore.location and ssl.truststore.certificates are set: keep one of the two")
    if certificates is not None:
        return in_lines(certificates)
    if location is None:
        return None
    data = read_store_file(settings, "truststore", location)
    if is_pem(data):
        return data.decode("ascii", errors="ignore")  # comments may have other characters
    from barnabas.security.tls.pkcs12 import trusted_certificates  # with `cryptography`, which most clients do not need

    return trusted_certificates(settings, location, data)
