"""DIGEST-MD5: the example of RFC 2831, and servers that do not keep to it."""

from __future__ import annotations

import pytest

from barnabas.metadata.zookeeper.digest_md5 import DigestMd5, SaslRefused, SaslUser

CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
RESPONSE = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",cnonce="OA6MHXh6VqTrRk",'
    b'digest-uri="imap/elwood.innosoft.com",nc=00000001,qop=auth,response=d388dad90d4bbd760a152321f2143af7'
)


def exchange() -> DigestMd5:
    return DigestMd5(SaslUser("chris", "secret"), "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_the_example_of_the_rfc() -> None:
    client = exchange()
    assert client.answer(CHALLENGE) == RESPONSE
    assert not client.is_done
    assert client.answer(b"rspauth=ea40f60335c427b5527b84dbabcdfffd") is None
    assert client.is_done


@pytest.mark.parametrize("token", [b"rspauth=ea40f60335c427b5527b84dbabcdfffe", b'rspauth=""', b"other=1", "rspauth=ä".encode()])
def test_a_server_that_does_not_know_the_password_is_refused(token: bytes) -> None:
    client = exchange()
    client.answer(CHALLENGE)
    with pytest.raises(SaslRefused, match="does not know the password"):
        client.answer(token)
    assert not client.is_done


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (None, "JAAS section Server"),
        (b"", "JAAS section Server"),
        (b"\xff\xfe", "not one of DIGEST-MD5"),
        (b"realm=x", "not one of DIGEST-MD5"),
        (b'nonce="x",algorithm=md5-sess,qop="auth-conf"', "quality of protection auth-conf"),
        (b"a" * 5000, "5000 bytes"),
    ],
)
def test_a_challenge_that_cannot_be_answered_is_refused(token: bytes | None, reason: str) -> None:
    with pytest.raises(SaslRefused, match=reason):
        exchange().answer(token)


def test_names_with_quotation_marks_are_escaped() -> None:
    response = DigestMd5(SaslUser('a"b\\c', "x")).answer(CHALLENGE)
    assert response is not None and b'username="a\\"b\\\\c"' in response


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    user = SaslUser("chris", "secret")
    assert DigestMd5(user).answer(CHALLENGE) != DigestMd5(user).answer(CHALLENGE)


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(SaslUser("chris", "secret"))
