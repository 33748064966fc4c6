"""JSON Web Tokens for OAUTHBEARER, and the key set that brokers check them by."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://issuer.example"
AUDIENCE = "the-brokers"
_HOUR_S = 3600
_KEY_ID = "key-1"


@dataclass(frozen=True)
class Issuer:
    """`key_set` is the JWKS file. `forger` is a key that is not in it."""

    key_set: Path
    key: rsa.RSAPrivateKey
    forger: rsa.RSAPrivateKey

    def token(self, user: str) -> str:
        return _token(self.key, user)

    def forged(self, user: str) -> str:
        return _token(self.forger, user)


def make_issuer(directory: Path) -> Issuer:
    key, forger = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    key_set = directory / "jwks.json"
    key_set.write_text(json.dumps({"keys": [public | {"kid": _KEY_ID, "use": "sig", "alg": "RS256"}]}))
    return Issuer(key_set, key, forger)


def _token(key: rsa.RSAPrivateKey, user: str) -> str:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "scope": "kafka", "iat": now, "exp": now + _HOUR_S}
    return jwt.encode(claims, key, "RS256", {"kid": _KEY_ID})
