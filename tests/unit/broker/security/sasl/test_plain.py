"""PLAIN on the broker's side."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from barnabas.broker.security.sasl import plain
from barnabas.broker.security.sasl.plain import Plain, Users
from barnabas.security.errors import SaslAuthentication

USERS = Users({"alice": "secret", "zoë": "pässword"}, b"of this broker")
WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize("message", ["\0alice\0secret", "alice\0alice\0secret", "\0zoë\0pässword"])
def test_a_user_with_the_password_is_authenticated(message: str) -> None:
    exchange = Plain(USERS).begin()
    assert exchange.evaluate(message.encode()) == b""
    assert exchange.is_complete
    assert exchange.authorization_id == message.split("\0")[1]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("\0alice\0wrong", WRONG),
        ("\0nobody\0secret", WRONG),
        ("\0nobody\0 ", WRONG),
        ("admin\0alice\0secret", "Authentication failed: Client requested an authorization id that is different from username"),
        ("\0\0secret", "Authentication failed: username not specified"),
        ("\0alice\0", "Authentication failed: password not specified"),
        ("alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        ("", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        ("\0alice\0secret\0more", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_the_texts_of_a_refusal_are_those_of_kafka(message: str, text: str) -> None:
    exchange = Plain(USERS).begin()
    with pytest.raises(SaslAuthentication) as refused:
        exchange.evaluate(message.encode())
    assert str(refused.value) == text
    assert not exchange.is_complete


@pytest.mark.parametrize("name", ["alice", "nobody"])
def test_passwords_are_compared_in_constant_time_also_for_unknown_users(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CVE-2021-38153. The compared values are hashes of one length."""
    lengths: list[tuple[int, int]] = []

    def compare(a: Any, b: Any) -> bool:
        lengths.append((len(a), len(b)))
        return hmac.compare_digest(a, b)

    class Hmac:
        digest = staticmethod(hmac.digest)
        compare_digest = staticmethod(compare)

    monkeypatch.setattr(plain, "hmac", Hmac)
    assert not USERS.authenticate(name, "w" * 1000)
    assert lengths == [(32, 32)]
