"""The headers of every response: what the browser may load, run and keep."""

from __future__ import annotations

from typing import Final

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_ALWAYS: Final = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # With no-referrer, browsers send "Origin: null" with forms, which the guard refuses.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_PAGE: Final = (b"cache-control", b"no-store")
_STATIC: Final = (b"cache-control", b"public, max-age=3600")


def secured(headers: list[tuple[bytes, bytes]], *, is_static: bool) -> list[tuple[bytes, bytes]]:
    """The headers of a response with those that every response has; a handler cannot weaken them."""
    replaced = {name for name, _ in (*_ALWAYS, _PAGE)}
    return [*((name, value) for name, value in headers if name.lower() not in replaced), *_ALWAYS, _STATIC if is_static else _PAGE]
