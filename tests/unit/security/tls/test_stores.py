"""Key and trust stores: what is read from PEM and PKCS12, and the one line for what cannot be read."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from barnabas.config_def import InvalidConfig
from barnabas.security.distinguished_name import subject_of
from barnabas.security.tls.authority import Issued
from barnabas.security.tls.contexts import client_context
from barnabas.security.tls.key_store import KeyMaterial, read_key_store
from barnabas.security.tls.settings import TlsSettings
from barnabas.security.tls.trust_store import read_trust_store
from tests.unit.security.certificates import authority, issued, key_store

ENCRYPTION = BestAvailableEncryption(b"secret")


def settings(prefix: str = "", **values: Any) -> TlsSettings:
    return TlsSettings({f"ssl.{name.replace('_', '.')}": value for name, value in values.items()}, prefix=prefix)


def material(**values: Any) -> KeyMaterial:
    read = read_key_store(settings(**values))
    assert read is not None
    return read


def pkcs12_of(broker: Issued, path: Path, *others: Issued) -> str:
    additional = [other.certificate for other in others]
    path.write_bytes(serialize_key_and_certificates(b"broker", broker.key, broker.certificate, additional, ENCRYPTION))
    return str(path)


def subjects(read: KeyMaterial) -> list[str]:
    return [subject.rfc4514_string() for subject in (certificate.subject for certificate in read.chain)]


def test_a_pem_store_has_key_and_chain(tmp_path: Path) -> None:
    (tmp_path / "store.pem").write_text(key_store("broker"))
    assert subjects(material(keystore_location=str(tmp_path / "store.pem"))) == ["CN=broker", "CN=Test CA"]


def test_the_chain_is_put_in_order() -> None:
    broker, root = issued("broker"), authority().own
    read = material(keystore_key=broker.key_pem(), keystore_certificate_chain=root.pem + issued("stranger").pem + broker.pem)
    assert subjects(read) == ["CN=broker", "CN=Test CA"]


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    (tmp_path / "store.pem").write_text(key_store("broker", password="secret"))
    location = str(tmp_path / "store.pem")
    assert isinstance(material(keystore_location=location, key_password="secret").key, ec.EllipticCurvePrivateKey)
    for password, says in ((None, r"is encrypted: set ssl\.key\.password"), ("wrong", r"ssl\.key\.password opens the key")):
        with pytest.raises(InvalidConfig, match=says) as refused:
            material(keystore_location=location, key_password=password)
        assert "wrong" not in str(refused.value)


def test_a_password_for_a_key_that_is_not_encrypted_does_not_matter() -> None:
    broker = issued("broker")
    assert material(keystore_key=broker.key_pem(), keystore_certificate_chain=broker.pem, key_password="any")


def test_a_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="do not belong together"):
        material(keystore_key=issued("a").key_pem(), keystore_certificate_chain=issued("b").pem)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", None])
def test_a_pkcs12_store_is_read_whatever_java_calls_it(tmp_path: Path, kind: str | None) -> None:
    location = pkcs12_of(issued("broker"), tmp_path / "store.p12", authority().own)
    read = material(keystore_location=location, keystore_password="secret", keystore_type=kind)
    assert subjects(read) == ["CN=broker", "CN=Test CA"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, r"ssl\.keystore\.password is missing"),
        ({"keystore_password": "wrong"}, r"ssl\.keystore\.password does not open .*store\.p12"),
        ({"keystore_password": "secret", "key_password": "other"}, r"ssl\.key\.password is not the same"),
        ({"keystore_password": "secret", "keystore_type": "PEM"}, r"ssl\.keystore\.type is PEM"),
    ],
)
def test_one_line_says_what_is_wrong_with_a_key_store(tmp_path: Path, values: dict[str, str], says: str) -> None:
    location = pkcs12_of(issued("broker"), tmp_path / "store.p12")
    with pytest.raises(InvalidConfig, match=says) as refused:
        material(keystore_location=location, **values)
    assert "\n" not in str(refused.value) and "wrong" not in str(refused.value)


def test_a_missing_file_is_named_with_its_setting() -> None:
    with pytest.raises(InvalidConfig, match=r"^zookeeper\.ssl\.keystore\.location: /missing cannot be read: No such file"):
        read_key_store(settings("zookeeper.", keystore_location="/missing"))


def test_a_trust_store_of_java_has_trusted_entries(tmp_path: Path) -> None:
    entries = [PKCS12Certificate(authority(name).own.certificate, name.encode()) for name in ("Test CA", "Second CA")]
    (tmp_path / "trust.p12").write_bytes(serialize_java_truststore(entries, ENCRYPTION))
    context = client_context(
        settings(truststore_location=str(tmp_path / "trust.p12"), truststore_password="secret", protocol="TLSv1.3"), True
    )
    assert sorted(subject_of(der) for der in context.get_ca_certs(binary_form=True)) == ["CN=Second CA", "CN=Test CA"]
    with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.password does not open"):
        read_trust_store(settings(truststore_location=str(tmp_path / "trust.p12")))


@pytest.mark.parametrize("chain_name", [None, b"CN=Test CA"])
def test_a_private_key_in_a_trust_store_does_not_make_its_authority_trusted(tmp_path: Path, chain_name: bytes | None) -> None:
    """`chain_name` is what OpenSSL and Java write for a certificate of the chain. An entry with an alias of its own is trusted."""
    broker, chain = issued("broker"), PKCS12Certificate(authority().own.certificate, chain_name)
    trusted = PKCS12Certificate(authority("Second CA").own.certificate, b"caroot")
    store = serialize_key_and_certificates(b"broker", broker.key, broker.certificate, [chain, trusted], ENCRYPTION)
    (tmp_path / "store.p12").write_bytes(store)
    read = read_trust_store(settings(truststore_location=str(tmp_path / "store.p12"), truststore_password="secret"))
    assert isinstance(read, bytes)
    ders = [certificate.public_bytes(Encoding.DER) for certificate in (broker.certificate, trusted.certificate)]
    assert read == b"".join(ders)


def test_comments_in_a_pem_file_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "trust.pem").write_text(f"# Zertifizierungsstelle für Tests\n{authority().own.pem}")
    context = client_context(settings(truststore_location=str(tmp_path / "trust.pem"), protocol="TLSv1.3"), True)
    assert len(context.get_ca_certs()) == 1


def test_secrets_are_not_shown() -> None:
    shown = repr(settings(key_password="opensesame")) + repr(KeyMaterial(rsa.generate_private_key(65537, 2048), (issued("a").certificate,)))
    assert "opensesame" not in shown and "rsa" not in shown.lower()


def test_the_key_is_never_in_clear_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda self, path, password: loaded.append(Path(path).read_text()))
    broker = issued("broker")
    client_context(settings(keystore_key=broker.key_pem(), keystore_certificate_chain=broker.pem, protocol="TLSv1.3"), True)
    assert "BEGIN ENCRYPTED PRIVATE KEY" in loaded[0] and "BEGIN PRIVATE KEY" not in loaded[0]
