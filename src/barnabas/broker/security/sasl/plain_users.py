"""The users of PLAIN: of the JAAS text of a listener, or of barnabas.sasl.plain.users."""

from __future__ import annotations

import re
from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.listeners import config_prefix
from barnabas.broker.security.sasl.server_jaas import server_jaas
from barnabas.config_def import InvalidConfig

USERS_SETTING: Final = "barnabas.sasl.plain.users"
_JAAS_USER: Final = "user_"
_SEPARATOR: Final = re.compile(r"(?<!\\),")


def plain_users(config: BrokerConfig, listener_name: str) -> dict[str, str]:
    """Passwords by user. Raises InvalidConfig if there are none, or two sources of them."""
    jaas = server_jaas(config, listener_name, "PLAIN")
    text = config.for_listener(listener_name, USERS_SETTING)
    if jaas is None and text is None:
        prefix = config_prefix(listener_name)
        raise InvalidConfig(
            f"Listener {listener_name} enables PLAIN and has no users: set {prefix}{USERS_SETTING}=NAME:PASSWORD,… or "
            f"{prefix}plain.sasl.jaas.config with user_NAME options, or remove PLAIN from sasl.enabled.mechanisms"
        )
    if jaas is not None and text is not None:
        raise InvalidConfig(
            f"Listener {listener_name} has users of PLAIN in {USERS_SETTING} and in sasl.jaas.config: keep them in one of the two"
        )
    if jaas is None:
        return parse_users(text)
    users = {name.removeprefix(_JAAS_USER): value for name, value in jaas.options.items() if name.startswith(_JAAS_USER)}
    if not users or not all(users.values()):
        raise InvalidConfig(
            f'sasl.jaas.config of PLAIN on listener {listener_name} has no user, or one without a password: write user_NAME="PASSWORD"'
        )
    return users


def parse_users(text: str) -> dict[str, str]:
    """Of `alice:secret,bob:other`. A comma in a password is written as `\\,`."""
    users: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in _SEPARATOR.split(text))):
        name, _, password = entry.replace("\\,", ",").partition(":")
        if not name or not password or name in users:
            raise InvalidConfig(
                f"{USERS_SETTING} cannot be read at entry {len(users) + 1}: write NAME:PASSWORD, each name once, with commas "
                "between them (a comma in a password is written as \\,)"
            )
        users[name] = password
    if not users:
        raise InvalidConfig(f"{USERS_SETTING} has no users: write NAME:PASSWORD, with commas between them")
    return users
