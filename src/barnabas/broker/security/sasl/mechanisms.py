"""The table of SASL mechanisms. A module is imported when a listener enables its mechanism."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from barnabas.broker.security.sasl.mechanism import Mechanism, MechanismSettings
from barnabas.config_def import InvalidConfig

MODULES: Final = {
    "GSSAPI": "gssapi",
    "OAUTHBEARER": "oauthbearer.oauthbearer",
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram",
    "SCRAM-SHA-512": "scram",
}


def make_mechanism(settings: MechanismSettings) -> Mechanism:
    """Raises InvalidConfig."""
    setting = f"sasl.enabled.mechanisms of listener {settings.listener_name}"
    module = MODULES.get(settings.name)
    if module is None:
        raise InvalidConfig(f"{setting} has the unknown mechanism {settings.name}: use some of {', '.join(MODULES)}")
    try:
        imported = import_module(f"{__package__}.{module}")
    except ImportError as error:
        raise InvalidConfig(
            f"{setting} has {settings.name}, for which a package is missing ({error}): install it, or set sasl.enabled.mechanisms to "
            "mechanisms such as SCRAM-SHA-512"
        ) from error
    made: Mechanism = imported.mechanism(settings)
    return made
