"""Every setting of a client is read, or it has no effect and is warned of."""

from __future__ import annotations

from functools import cache

import pytest

from barnabas.client.admin import config as admin
from barnabas.client.config.without_effect import WITHOUT_EFFECT
from barnabas.client.consumer import config as consumer
from barnabas.client.producer import config as producer
from tests.readings import Readings, trees

# The constants for users, and everything that is not of a client.
PASSED_OVER = ("client/config/config_names.py", "client/config/without_effect.py", "security/settings_without_effect.py")
ROOMS = ("client/", "security/", "config_providers.py")
SETTINGS = sorted(producer.KEYS.keys() | consumer.KEYS.keys() | admin.KEYS.keys())


@cache
def readings() -> Readings:
    return Readings(path for path, _ in trees() if path.startswith(PASSED_OVER) or not path.startswith(ROOMS))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_a_client_works_or_is_warned_of(name: str) -> None:
    assert (name in readings().texts) != (name in WITHOUT_EFFECT)


def test_the_table_has_known_settings_only() -> None:
    assert WITHOUT_EFFECT.keys() <= set(SETTINGS)
