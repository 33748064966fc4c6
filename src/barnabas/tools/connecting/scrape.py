"""Reads metrics over HTTP or HTTPS, with errors that say what to do."""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Final

from barnabas.tools.command_line.failures import Terse

TIMEOUT_S: Final = 10
BYTES_MAX: Final = 256 << 20
DEFAULT_URL: Final = "http://localhost:9404"
_PATH: Final = "/metrics"


@dataclass(frozen=True)
class ScrapeCredentials:
    """`ca` is a file with the certificates that are trusted; without it, those of the system are."""

    ca: str | None = None
    user: str | None = None  # NAME:PASSWORD


def metrics_url(text: str) -> str:
    """The address of metrics: `localhost:9404` and `http://localhost:9404` are those of `/metrics` there."""
    url = text if "://" in text else f"http://{text}"
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest.partition("/")[0]:
        raise Terse(f"--url {text}: it must be http://HOST:PORT or https://HOST:PORT, such as {DEFAULT_URL}")
    return url if "/" in rest.rstrip("/") else url.rstrip("/") + _PATH


def scrape(url: str, credentials: ScrapeCredentials) -> str:
    """Raises Terse with one line."""
    request = urllib.request.Request(url)
    if credentials.user is not None:
        request.add_header("Authorization", "Basic " + base64.b64encode(credentials.user.encode()).decode())
    try:
        context = ssl.create_default_context(cafile=credentials.ca) if url.startswith("https:") else None
    except OSError as error:
        raise Terse(f"--ca {credentials.ca}: cannot read certificates from it: {error}") from None
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as response:
            data: bytes = response.read(BYTES_MAX)
            return data.decode(errors="replace")
    except urllib.error.HTTPError as error:
        raise Terse(_refused(url, error)) from None
    except urllib.error.URLError as error:
        raise Terse(_unreachable(url, error.reason)) from None
    except (OSError, ValueError) as error:
        raise Terse(_unreachable(url, error)) from None


def _refused(url: str, error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return f"{url} answers {error.code} {error.reason}: name a user that may read metrics with --user NAME:PASSWORD"
    return f"{url} answers {error.code} {error.reason}: check that it is the address of metrics.listener"


def _unreachable(url: str, reason: object) -> str:
    if isinstance(reason, ConnectionRefusedError):
        return f"Nothing listens at {url}: set metrics.listener={DEFAULT_URL} for the broker, or name its address with --url"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"The certificate of {url} is not trusted ({reason.verify_message}): name the file of its authority with --ca"
    if isinstance(reason, TimeoutError):
        return f"{url} does not answer within {TIMEOUT_S} s: check the address, and that the broker runs"
    return f"{url} cannot be read ({reason}): check the address with metrics.listener of the broker"
