"""The cipher suites of ssl.cipher.suites: names of IANA, which Java uses, become those of OpenSSL."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TLS_1_3_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)


@dataclass(frozen=True, slots=True)
class CipherSuites:
    """Those of TLS 1.3, and those of earlier versions by OpenSSL's names."""

    tls_1_3: tuple[str, ...]
    earlier: tuple[str, ...]


def cipher_suites(names: Sequence[str]) -> CipherSuites:
    """Raises ValueError with the name of a suite that OpenSSL does not have."""
    earlier = tuple(openssl_name(name) for name in names if name not in TLS_1_3_SUITES)
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in earlier:
        try:
            trial.set_ciphers(name)
        except ssl.SSLError:
            raise ValueError(f"the cipher suite {name} is not known to {ssl.OPENSSL_VERSION}") from None
    return CipherSuites(tuple(name for name in names if name in TLS_1_3_SUITES), earlier)


def openssl_name(name: str) -> str:
    """ECDHE-RSA-AES128-GCM-SHA256 of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; other names are returned as they are."""
    match = re.fullmatch(r"(?:TLS|SSL)_(.+)_WITH_(.+)", name)
    if match is None:
        return name
    exchange = "" if match[1] == "RSA" else match[1].replace("_", "-") + "-"
    cipher = re.sub(r"(AES|CAMELLIA)_(\d+)", r"\1\2", match[2])
    cipher = cipher.replace("3DES_EDE_CBC", "DES-CBC3").replace("_CBC_", "_").replace("CCM_8", "CCM8")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("_SHA256")
    return exchange + cipher.replace("_", "-")
