"""Certificates for tests of TLS: an authority, a broker's certificate for localhost, a client's, and an authority nobody knows."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "opens-the-key"


@dataclass(frozen=True)
class Certificates:
    """Files in PEM; a store has the private key and then the chain, as Kafka's PEM key stores do."""

    authority: Path
    server_store: Path
    client_store: Path
    encrypted_client_store: Path  # its key opens with PASSWORD
    stranger: Path  # another authority


def make(directory: Path) -> Certificates:
    """Skips the test where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates (Debian: apt-get install openssl)")
    authority = _authority(directory, "authority")
    server_key, server_chain = _signed(directory, "server", "localhost", "DNS:localhost,IP:127.0.0.1")
    client_key, client_chain = _signed(directory, "client", "the-client", "DNS:the-client")
    encrypted_key = directory / "encrypted.key"
    _openssl("pkcs8", "-topk8", "-in", client_key, "-out", encrypted_key, "-passout", f"pass:{PASSWORD}")
    return Certificates(
        authority,
        _store(directory / "server.pem", server_key, server_chain),
        _store(directory / "client.pem", client_key, client_chain),
        _store(directory / "encrypted.pem", encrypted_key, client_chain),
        _authority(directory, "stranger"),
    )


def _authority(directory: Path, name: str) -> Path:
    made = directory / f"{name}.crt"
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign"]
    _openssl("req", *options, "-keyout", directory / f"{name}.key", "-out", made)
    return made


def _signed(directory: Path, name: str, common_name: str, alternatives: str) -> tuple[Path, Path]:
    key, request, chain, extensions = (directory / f"{name}.{kind}" for kind in ("key", "csr", "crt", "ext"))
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={common_name}", "-keyout", key, "-out", request)
    extensions.write_text(f"subjectAltName={alternatives}\n")
    signer = ["-CA", directory / "authority.crt", "-CAkey", directory / "authority.key", "-CAcreateserial", "-days", "2"]
    _openssl("x509", "-req", "-in", request, *signer, "-extfile", extensions, "-out", chain)
    return key, chain


def _store(path: Path, key: Path, chain: Path) -> Path:
    path.write_text(key.read_text() + chain.read_text())
    return path


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
