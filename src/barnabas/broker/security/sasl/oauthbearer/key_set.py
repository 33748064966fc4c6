"""A JSON Web Key Set (RFC 7517): the public keys of an identity provider. Only asymmetric keys are used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import jwt

_BY_TYPE: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
ALGORITHMS: Final = tuple(algorithm for algorithms in _BY_TYPE.values() for algorithm in algorithms)


class InvalidKeySet(Exception):
    """The text is not a key set, or has no key for signatures."""


class KeySet:
    def __init__(self, keys: list[Mapping[str, Any]]) -> None:
        self._keys = keys
        self._made: dict[tuple[int, str], jwt.PyJWK] = {}

    @classmethod
    def parse(cls, text: bytes) -> KeySet:
        """Raises InvalidKeySet."""
        try:
            keys = json.loads(text)["keys"]
            usable = [key for key in keys if key.get("kty") in _BY_TYPE and key.get("use", "sig") == "sig"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidKeySet('it is not a JSON Web Key Set, {"keys": […]}') from None
        if not usable:
            raise InvalidKeySet("it has no RSA, EC or OKP key for signatures")
        return cls(usable)

    def key(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key with that id, if it may be used with the algorithm. Without an id, the key of the set if only one fits."""
        fitting = [at for at, key in enumerate(self._keys) if _fits(key, algorithm) and (key_id is None or key.get("kid") == key_id)]
        return self._key(fitting[0], algorithm) if len(fitting) == 1 else None

    def _key(self, at: int, algorithm: str) -> jwt.PyJWK | None:
        if (at, algorithm) not in self._made:
            try:
                self._made[at, algorithm] = jwt.PyJWK(dict(self._keys[at]), algorithm)
            except (jwt.PyJWTError, ValueError, TypeError, KeyError):
                return None  # a key with wrong numbers: no signature can be checked with it
        return self._made[at, algorithm]


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    if algorithm not in _BY_TYPE[key["kty"]] or key.get("alg", algorithm) != algorithm:
        return False
    return algorithm not in _CURVES or key.get("crv") == _CURVES[algorithm]
