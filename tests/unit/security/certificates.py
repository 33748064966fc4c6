"""Certificates for unit tests, made by the product's own authority."""

from __future__ import annotations

import functools

from barnabas.security.tls.authority import CertificateAuthority, Issued


def authority(name: str = "Test CA") -> CertificateAuthority:
    return _created(name)


def issued(name: str, *hosts: str, days: int = 30, ca: str = "Test CA") -> Issued:
    return authority(ca).issue(name, hosts, days)


def key_store(name: str, *hosts: str, days: int = 30, ca: str = "Test CA", password: str | None = None) -> str:
    return authority(ca).key_store(issued(name, *hosts, days=days, ca=ca), password)


@functools.cache
def _created(name: str) -> CertificateAuthority:
    return CertificateAuthority.create(name)
