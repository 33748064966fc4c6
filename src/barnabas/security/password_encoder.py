"""Kafka's PasswordEncoder: dynamic passwords in the metadata store, encrypted with password.encoder.secret.

The text has everything that decoding needs except the secret, so a broker with other cipher settings can decode it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import Final

from barnabas.config_def import InvalidConfig

DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
DEFAULT_CIPHER: Final = "AES/CBC/PKCS5Padding"
GCM: Final = "AES/GCM/NoPadding"
_HASHES: Final = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA512": "sha512",
}
_CIPHERS: Final = (DEFAULT_CIPHER, GCM)
_KEY_LENGTHS: Final = (128, 192, 256)
_SALT_BYTES: Final = 256
_BLOCK_BITS: Final = 128
_CBC_IV_BYTES: Final = 16
_GCM_IV_BYTES: Final = 12
_GCM_TAG_BITS: Final = 128
_ITERATIONS_MAX: Final = 10_000_000  # of a stored password: above, decoding would hold a broker for seconds


class PasswordEncoder:
    """Its settings are for encoding. Raises InvalidConfig for an algorithm that is not known."""

    def __init__(
        self, secret: str, key_factory: str | None = None, cipher: str = DEFAULT_CIPHER, key_length: int = 128, iterations: int = 4096
    ) -> None:
        self._secret = secret.encode()
        self._key_factory = key_factory or DEFAULT_KEY_FACTORY
        self._cipher = cipher
        self._key_length = key_length
        self._iterations = iterations
        _check("password.encoder.keyfactory.algorithm", self._key_factory, tuple(_HASHES))
        _check("password.encoder.cipher.algorithm", cipher, _CIPHERS)
        _check("password.encoder.key.length", key_length, _KEY_LENGTHS)

    def encode(self, password: str) -> str:
        salt = secrets.token_bytes(_SALT_BYTES)
        vector = secrets.token_bytes(_GCM_IV_BYTES if self._cipher == GCM else _CBC_IV_BYTES)
        key = self._key(self._key_factory, salt, self._iterations, self._key_length)
        fields = {  # in Kafka's order, which is that of a hash map
            "initializationVector": _base64(vector),
            "keyLength": self._key_length,
            "salt": _base64(salt),
            "keyFactoryAlgorithm": self._key_factory,
            "cipherAlgorithm": self._cipher,
            **({"authenticationTagLength": _GCM_TAG_BITS} if self._cipher == GCM else {}),
            "iterations": self._iterations,
            "passwordLength": _java_length(password),
            "encryptedPassword": _base64(_encrypted(self._cipher, key, vector, password.encode())),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """Raises InvalidConfig, without the text in the message: another secret, or a text that is not an encoded password."""
        try:
            return self._decoded(dict(part.strip().rsplit(":", 1) for part in text.split(",")))
        except (KeyError, ValueError, binascii.Error):  # UnicodeDecodeError is a ValueError
            raise InvalidConfig("Password could not be decoded: it was encoded with another password.encoder.secret") from None

    def _decoded(self, fields: dict[str, str]) -> str:
        cipher, iterations, key_length = fields["cipherAlgorithm"], int(fields["iterations"]), int(fields["keyLength"])
        if cipher not in _CIPHERS or key_length not in _KEY_LENGTHS or not 0 < iterations <= _ITERATIONS_MAX:
            raise ValueError(cipher)
        key = self._key(fields["keyFactoryAlgorithm"], base64.b64decode(fields["salt"]), iterations, key_length)
        vector, encrypted = (base64.b64decode(fields[name]) for name in ("initializationVector", "encryptedPassword"))
        password = _decrypted(cipher, key, vector, encrypted).decode()
        if _java_length(password) != int(fields["passwordLength"]):
            raise ValueError("sanity check of length failed")
        return password

    def _key(self, key_factory: str, salt: bytes, iterations: int, key_length: int) -> bytes:
        return hashlib.pbkdf2_hmac(_HASHES[key_factory], self._secret, salt, iterations, key_length // 8)


def _encrypted(cipher: str, key: bytes, vector: bytes, password: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if cipher == GCM:
        return AESGCM(key).encrypt(vector, password, None)
    padder, encryptor = PKCS7(_BLOCK_BITS).padder(), Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    return encryptor.update(padder.update(password) + padder.finalize()) + encryptor.finalize()


def _decrypted(cipher: str, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises ValueError."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if cipher == GCM:
        try:
            return AESGCM(key).decrypt(vector, encrypted, None)
        except InvalidTag:
            raise ValueError("tag mismatch") from None
    unpadder, decryptor = PKCS7(_BLOCK_BITS).unpadder(), Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    return unpadder.update(decryptor.update(encrypted) + decryptor.finalize()) + unpadder.finalize()


def _check(setting: str, value: object, supported: tuple[object, ...]) -> None:
    if value not in supported:
        raise InvalidConfig(f"{setting}={value} is not supported: use one of {', '.join(map(str, supported))}")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _java_length(text: str) -> int:
    """In UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2
