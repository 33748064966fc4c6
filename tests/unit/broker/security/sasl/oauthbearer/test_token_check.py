"""Which tokens of OAUTHBEARER are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.security.sasl.callbacks import OAuthToken
from barnabas.broker.security.sasl.oauthbearer.key_set import KeySet
from barnabas.broker.security.sasl.oauthbearer.token_check import ClaimRules, TokenCheck, UnsignedCheck
from tests.unit.broker.security.sasl.oauthbearer.tokens import (
    EC_KEY,
    NOW_MS,
    OTHER_RSA_KEY,
    RSA_KEY,
    ec_jwk,
    jwks,
    rsa_jwk,
    signed,
    unsigned,
)

NOW_S = NOW_MS // 1000
RULES = ClaimRules("https://issuer", ("kafka", "other"), "sub", "scope", 30)
KEYS = KeySet.parse(jwks(rsa_jwk("one"), ec_jwk("two"), rsa_jwk("only-256", alg="RS256"), {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}))


class StoppedClock(Clock):
    def now_ms(self) -> int:
        return NOW_MS


def check(token: str, rules: ClaimRules = RULES) -> OAuthToken | None:
    return TokenCheck(rules, KEYS, StoppedClock()).validate(token)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256"])
def test_a_token_signed_by_a_key_of_the_set_is_accepted_until_it_expires(algorithm: str) -> None:
    assert check(signed("one", algorithm)) == OAuthToken("alice", NOW_MS + 60_000)


def test_elliptic_curves_are_accepted_too() -> None:
    assert check(signed("two", "ES256", EC_KEY)) == OAuthToken("alice", NOW_MS + 60_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["x", "other"]},
        {"iat": NOW_S + 29},
        {"nbf": NOW_S + 29},
        {"exp": NOW_S - 29},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"exp": NOW_S + 0.5},
        {"sub": " alice\t"},  # Kafka trims it, so that an ACL that denies alice matches
    ],
)
def test_these_claims_are_accepted(changes: dict[str, Any]) -> None:
    accepted = check(signed(**changes))
    assert accepted is not None
    assert accepted.principal_name == "alice"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://other"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"aud": "elsewhere"}, "audience"),
        ({"aud": None}, "audience"),
        ({"exp": None}, "exp"),
        ({"exp": NOW_S - 31}, "has expired"),
        ({"exp": "tomorrow"}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": 1e300}, "exp"),
        ({"exp": 10**400}, "exp"),
        ({"exp": float("nan")}, "exp"),
        ({"iat": None}, "iat"),
        ({"iat": NOW_S + 31}, "issued in the future"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"sub": None}, "no subject"),
        ({"sub": ""}, "no subject"),
        ({"sub": " "}, "no subject"),
        ({"sub": "\x01\u00a0"}, "no subject"),
        ({"scope": 7}, "scope"),
    ],
)
def test_these_claims_are_refused_and_the_log_names_the_reason(
    changes: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = signed(**changes)
    with caplog.at_level("INFO"):
        assert check(token) is None
    assert reason in caplog.text
    assert token not in caplog.text


@pytest.mark.parametrize(
    "token",
    [
        unsigned(),
        unsigned("None"),
        unsigned("NONE", "eA"),
        unsigned("HS256", "eA"),
        unsigned("RS256"),
        unsigned("RS256", "eA"),
        "",
        "a.b",
        "a.b.c",
        "....",
        "x" * 100_000,
    ],
)
def test_a_token_without_a_signature_is_refused(token: str) -> None:
    """CVE-2026-33557."""
    assert check(token) is None


@pytest.mark.parametrize(
    ("key_id", "algorithm", "key"),
    [
        ("one", "RS256", OTHER_RSA_KEY),  # not the key of that id
        ("unknown", "RS256", RSA_KEY),
        (None, "RS256", RSA_KEY),  # two keys fit
        ("only-256", "RS512", RSA_KEY),  # the key is for another algorithm
        ("two", "RS256", RSA_KEY),
        ("oct", "HS256", "secret" * 10),  # a shared secret: whoever can check can also sign
        ("one", "HS256", "secret" * 10),
    ],
)
def test_a_token_signed_otherwise_is_refused(key_id: str | None, algorithm: str, key: Any) -> None:
    assert check(signed(key_id, algorithm, key)) is None


def test_the_public_key_as_a_shared_secret_is_refused() -> None:
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from jwt.utils import base64url_encode

    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    message = unsigned("HS256").rsplit(".", 1)[0]
    forged = f"{message}.{base64url_encode(hmac.digest(pem, message.encode(), hashlib.sha256)).decode()}"
    assert check(forged) is None


def test_the_subject_can_be_another_claim() -> None:
    rules = ClaimRules("https://issuer", ("kafka",), "email", "scope", 30)
    assert check(signed(email="alice@example.org"), rules) == OAuthToken("alice@example.org", NOW_MS + 60_000)
    assert check(signed(), rules) is None


def test_unsigned_tokens_are_accepted_only_by_the_check_for_tests() -> None:
    check_for_tests = UnsignedCheck(ClaimRules(None, (), "sub", "scope", 30), StoppedClock())
    assert check_for_tests.validate(unsigned()) == OAuthToken("alice", NOW_MS + 60_000)
    for token in (unsigned(exp=NOW_S - 31), unsigned("RS256"), unsigned(signature="eA"), signed(), "a.b.", "é.."):
        assert check_for_tests.validate(token) is None
