"""PLAIN, SCRAM and OAUTHBEARER, word by word; SCRAM by the example of RFC 7677."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.errors import SaslAuthentication
from barnabas.client.network.sasl.oauthbearer import OAuthBearer
from barnabas.client.network.sasl.plain import Plain
from barnabas.client.network.sasl.scram import HASHES, Scram
from barnabas.config_def import InvalidConfig

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def test_plain() -> None:
    mechanism = Plain("alice", "sécret")
    assert mechanism.begin() == "\0alice\0sécret".encode() and mechanism.is_done
    assert mechanism.answer(b"") is None
    with pytest.raises(SaslAuthentication):
        mechanism.answer(b"more?")


def test_scram_by_the_example_of_the_rfc() -> None:
    mechanism = Scram("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    assert mechanism.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert mechanism.answer(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert not mechanism.is_done
    assert mechanism.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None and mechanism.is_done


def test_scram_escapes_names_and_marks_tokens() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "x", nonce="n").begin() == b"n,,n=a=3Db=2Cc,r=n"
    assert Scram("SCRAM-SHA-256", "id", "hmac", token_auth=True, nonce="n").begin() == b"n,,n=id,r=n,tokenauth=true"


@pytest.mark.parametrize(
    ("server_first", "words"),
    [
        (b"r=another%nonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "iterations 4095 is less than the minimum 4096"),
        (SERVER_FIRST.replace(b"i=4096", b"i=2147483647"), "iterations"),
        (SERVER_FIRST.replace(b"gQ==", b"gQ="), "base64"),
        (b"e=other-error", "first message"),
        (b"\xff\xfe", "first message"),
        (b"", "first message"),
    ],
)
def test_scram_refuses_a_server_that_does_not_keep_to_it(server_first: bytes, words: str) -> None:
    mechanism = Scram("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    mechanism.begin()
    with pytest.raises(SaslAuthentication, match=words):
        mechanism.answer(server_first)


@pytest.mark.parametrize(
    ("server_final", "words"),
    [
        (b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "does not know the password"),
        (b"e=invalid-proof", "invalid-proof"),
        (b"hello", "final message"),
    ],
)
def test_scram_refuses_a_server_that_cannot_prove_itself(server_final: bytes, words: str) -> None:
    mechanism = Scram("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    mechanism.begin()
    mechanism.answer(SERVER_FIRST)
    with pytest.raises(SaslAuthentication, match=words):
        mechanism.answer(server_final)


@given(st.sampled_from(sorted(HASHES)), st.text(min_size=1), st.text(), st.binary(min_size=1, max_size=40))
def test_scram_with_a_server_that_knows_the_password(name: str, user: str, password: str, salt: bytes) -> None:
    user, password = user.encode("utf-8", "ignore").decode(), password.encode("utf-8", "ignore").decode()
    kind = HASHES[name]
    mechanism = Scram(name, user, password)
    first = mechanism.begin().decode()[3:]
    nonce = first.rpartition(",r=")[2] + "servers"
    server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i=4096"
    final = mechanism.answer(server_first.encode())
    assert final is not None
    without_proof, _, proof = final.decode().rpartition(",p=")
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), salt, 4096)
    message = f"{first},{server_first},{without_proof}".encode()
    stored = hashlib.new(kind, hmac.digest(salted, b"Client Key", kind)).digest()
    signature = hmac.digest(stored, message, kind)
    client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(kind, client_key).digest() == stored
    proven = hmac.digest(hmac.digest(salted, b"Server Key", kind), message, kind)
    assert mechanism.answer(b"v=" + base64.b64encode(proven)) is None and mechanism.is_done


def test_oauthbearer_with_extensions() -> None:
    mechanism = OAuthBearer("the.jwt.token", {"logicalCluster": "lkc-1", "pool": "a b"})
    assert mechanism.begin() == b"n,,\x01auth=Bearer the.jwt.token\x01logicalCluster=lkc-1\x01pool=a b\x01\x01"
    assert mechanism.is_done and mechanism.answer(b"") is None


def test_oauthbearer_says_a_word_after_a_refusal() -> None:
    mechanism = OAuthBearer("t")
    mechanism.begin()
    assert mechanism.answer(b'{"status":"invalid_token"}') == b"\x01"
    assert mechanism.refused == "invalid_token" and not mechanism.is_done


@pytest.mark.parametrize("extension", [("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "\x01")])
def test_oauthbearer_refuses_extensions_that_would_break_it(extension: tuple[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        OAuthBearer("t", dict([extension]))
