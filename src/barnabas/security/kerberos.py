"""Kerberos for the SASL mechanism GSSAPI: the login of a client or broker, and the library of the extra `gssapi`.

The library is imported only where GSSAPI is used. Its calls may wait for the key distribution center or a file, so callers run them in a
thread.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import Jaas

# RFC 4752: the security layers as bits, and the size of the largest message. Kafka offers no layer, so the size is 0.
NO_LAYER: Final = 1
LAYERS: Final = bytes((NO_LAYER, 0, 0, 0))

_MINOR: Final = re.compile(r"^.*Minor \(\d+\): (?=\S)")  # before it is a text that says to look behind it


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """The options of Java's Krb5LoginModule that Kafka uses. Without a keytab, the tickets in the cache of the user are used."""

    keytab: str | None = None
    principal: str | None = None
    service_name: str | None = None
    ticket_cache: str | None = None

    @classmethod
    def of_jaas(cls, jaas: Jaas) -> KerberosLogin:
        """Options whose value is not a file or a name have no meaning here: `storeKey`, `useKeyTab`, `useTicketCache`."""
        options = jaas.options
        return cls(options.get("keyTab"), options.get("principal"), options.get("serviceName"), options.get("ticketCache"))

    def require_readable_keytab(self, setting: str) -> None:
        """Raises InvalidConfig. `setting` is the name of the setting that has the keytab."""
        if self.keytab is not None and not os.access(self.keytab, os.R_OK):
            raise InvalidConfig(f"{setting}: the keytab {self.keytab} cannot be read; check the path and who may read the file")


def gssapi_library(setting: str) -> Any:
    """The package `gssapi`. Raises InvalidConfig with the commands that install it; `setting` is what requires it."""
    try:
        return import_module("gssapi")
    except ImportError as error:
        raise InvalidConfig(
            f"{setting} is GSSAPI, which needs the package gssapi ({error}): pip install 'barnabas[gssapi]' "
            "(it is compiled: apt-get install gcc python3-dev libkrb5-dev)"
        ) from None


def default_realm(library: Any) -> str:
    """Of the Kerberos settings of this machine; `library` is the package `gssapi`. Raises its GSSError if there is none."""
    name = library.Name("any", library.NameType.user).canonicalize(library.MechType.kerberos)
    return str(name).partition("@")[2]


def kerberos_reason(error: Exception) -> str:
    """What the Kerberos library says, on one line: `Server kafka/host@REALM not found in Kerberos database`."""
    text = " ".join(str(error).split())
    return _MINOR.sub("", text)
