"""The TLS context of a client that connects again and again, and has to use certificates that were replaced meanwhile."""

from __future__ import annotations

import logging
import ssl

from barnabas.config_def import InvalidConfig
from barnabas.security.tls.contexts import client_context
from barnabas.security.tls.settings import FileStamp, TlsSettings

_log = logging.getLogger(__name__)


class RenewedContext:
    """Reads the files of the key and trust store again when they have changed. Raises InvalidConfig if they cannot be used at first; later
    the previous context stays in use, with one warning."""

    def __init__(self, settings: TlsSettings, checks_host: bool) -> None:
        self._settings = settings
        self._checks_host = checks_host
        self._stamps: tuple[FileStamp, ...] = settings.stamps()  # before the files are read, so that a change in between is noticed
        self._context = client_context(settings, checks_host)

    def current(self) -> ssl.SSLContext:
        """The context for a new connection."""
        stamps = self._settings.stamps()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._context = client_context(self._settings, self._checks_host)
            except (InvalidConfig, OSError) as error:
                _log.warning("The new certificates are not used, and the previous ones stay in use: %s", error)
        return self._context
