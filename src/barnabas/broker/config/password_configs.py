"""The passwords among the dynamic configs of a broker: encrypted in the metadata store, in clear in the memory of the broker.

As Apache Kafka 3.9 with ZooKeeper does it. Without password.encoder.secret a dynamic password is refused, and one in the metadata store is
ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.synonyms import config_key
from barnabas.config_def import InvalidConfig
from barnabas.security.password_encoder import DEFAULT_CIPHER, PasswordEncoder

_log = logging.getLogger(__name__)


class PasswordConfigs:
    """`config` has the settings password.encoder.*. Raises InvalidConfig for an algorithm that is not known."""

    def __init__(self, config: BrokerConfig) -> None:
        self._encoder = _encoder(config, "password.encoder.secret")
        self._old_encoder = _encoder(config, "password.encoder.old.secret")

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The configs with their passwords in clear. A password that cannot be decoded is left out."""
        properties: dict[str, str] = {}
        for name, text in stored.items():
            try:
                properties[name] = self._decoded(text) if is_password(name) else text
            except InvalidConfig as error:
                _log.error("The dynamic config %s is ignored: %s. Set password.encoder.secret, or set %s again.", name, error, name)
        return properties

    def encoded(self, properties: Mapping[str, str], stored: Mapping[str, str], decoded: Mapping[str, str]) -> dict[str, str]:
        """The configs for the metadata store. `decoded` is what `stored` means: a password that has not changed keeps its text. Raises
        InvalidConfig."""
        return {
            name: text if not is_password(name) else stored[name] if decoded.get(name) == text else self._encoded(text)
            for name, text in properties.items()
        }

    def with_new_secret(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The configs with those passwords encoded anew that password.encoder.old.secret decodes. Raises InvalidConfig."""
        return {name: self._encoded_anew(text) if is_password(name) else text for name, text in stored.items()}

    def _encoded_anew(self, text: str) -> str:
        if self._old_encoder is None:
            return text
        try:
            password = self._old_encoder.decode(text)
        except InvalidConfig:
            return text  # encoded with the new secret already
        return self._encoded(password)

    def _decoded(self, text: str) -> str:
        return self._required().decode(text)

    def _encoded(self, password: str) -> str:
        return self._required().encode(password)

    def _required(self) -> PasswordEncoder:
        if self._encoder is None:
            raise InvalidConfig("Password encoder secret not configured")
        return self._encoder


def is_password(name: str) -> bool:
    key = config_key(name)
    return key is not None and key.sensitive


def _encoder(config: BrokerConfig, setting: str) -> PasswordEncoder | None:
    secret = config.text(setting)
    if secret is None:
        return None
    return PasswordEncoder(
        secret,
        config.text("password.encoder.keyfactory.algorithm"),
        config.text("password.encoder.cipher.algorithm") or DEFAULT_CIPHER,
        config.number("password.encoder.key.length"),
        config.number("password.encoder.iterations"),
    )
