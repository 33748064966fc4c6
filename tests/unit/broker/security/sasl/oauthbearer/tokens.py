"""Keys of an identity provider, and tokens that it signs."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

NOW_MS = 1_000_000_000
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def rsa_jwk(key_id: str, key: rsa.RSAPrivateKey = RSA_KEY, **more: str) -> dict[str, Any]:
    return RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": key_id} | more


def ec_jwk(key_id: str) -> dict[str, Any]:
    return ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True) | {"kid": key_id}


def jwks(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """None removes a claim."""
    given = {"iss": "https://issuer", "aud": "kafka", "sub": "alice", "iat": NOW_MS // 1000, "exp": NOW_MS // 1000 + 60} | changes
    return {name: value for name, value in given.items() if value is not None}


def signed(key_id: str | None = "one", algorithm: str = "RS256", key: Any = RSA_KEY, **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm, headers=None if key_id is None else {"kid": key_id})


def unsigned(algorithm: str = "none", signature: str = "", **changes: Any) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": algorithm}, claims(**changes)))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), signature])
