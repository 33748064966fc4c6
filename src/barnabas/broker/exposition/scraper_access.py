"""Whether a client of metrics.listener may read: its user by HTTP Basic authentication, and what the authorizer allows that user.

With metrics.listener.authentication=none a client is the principal of its TLS certificate, or User:ANONYMOUS, as on listeners without SASL.
If the broker has an authorizer, reading needs the operation Describe on the cluster. Two paths need no login, for the probes of
Kubernetes: they then answer with the status alone.
"""

from __future__ import annotations

import base64
import binascii
import logging
from http import HTTPStatus
from typing import Final

from barnabas.broker.exposition.http_server import HttpRequest, HttpResponse
from barnabas.broker.security.access import CLUSTER_NAME, Access
from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.broker.security.principal_builder import AuthenticationContext, PrincipalBuilder
from barnabas.broker.security.sasl.passwords import Passwords, PasswordSource, TooManyChecks
from barnabas.broker.security.session import Session
from barnabas.endpoint import SecurityProtocol
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

API: Final = "Metrics"  # the name of the request in the audit log
OPERATION: Final = AclOperation.DESCRIBE
CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="metrics", charset="UTF-8"'}

_log = logging.getLogger(__name__)


class ScraperAccess:
    """`passwords` is None without authentication. `builder` makes the principal of a client without a user."""

    def __init__(self, access: Access, builder: PrincipalBuilder, listener_name: str, uses_tls: bool, passwords: Passwords | None) -> None:
        self._access = access
        self._builder = builder
        self._listener_name = listener_name
        self._security_protocol = SecurityProtocol.SSL if uses_tls else SecurityProtocol.PLAINTEXT
        self._passwords = passwords

    @property
    def is_open(self) -> bool:
        """Everybody who can connect may read."""
        return self._passwords is None and self._access.is_open

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The response to a client that may not read; None if it may."""
        if self.is_open:
            return None
        if self._passwords is None:
            return self._authorized(self._session(request, None, ""))
        credentials = basic_credentials(request.headers.get("authorization", ""))
        if credentials is None:
            return _unauthorized()
        username, password = credentials
        try:
            source = await self._passwords.verify(username, password)
        except TooManyChecks:
            return HttpResponse(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests\n", headers={"Retry-After": "1"})
        if source is None:
            _log.info("Failed authentication with /%s (metrics.listener: invalid user or password)", request.client.address)
            return _unauthorized()
        return self._authorized(self._session(request, source, username))

    async def may_see_details(self, request: HttpRequest) -> bool:
        """Whether a probe, which everybody may call, is answered with more than the status."""
        if self._passwords is not None and "authorization" not in request.headers:
            return False
        return await self.refusal(request) is None

    def _session(self, request: HttpRequest, source: PasswordSource | None, username: str) -> Session:
        client = request.client
        if source is None:
            context = AuthenticationContext(self._security_protocol, self._listener_name, client.address, client.certificate)
            return Session(self._builder.build(context), client.address)
        config = source.listener.config
        context = AuthenticationContext(
            config.security_protocol, source.listener_name, client.address, client.certificate, source.mechanism_name, username
        )
        return Session(config.principals.build(context), client.address, mechanism=source.mechanism_name)

    def _authorized(self, session: Session) -> HttpResponse | None:
        authorizer = self._access.authorizer
        if authorizer is None or authorizer.authorize(session, Action(OPERATION, ResourceType.CLUSTER, CLUSTER_NAME, api=API)):
            return None
        return HttpResponse(HTTPStatus.FORBIDDEN, f"{session.principal} needs {OPERATION.name} on the cluster\n")


def basic_credentials(header: str) -> tuple[str, str] | None:
    """User and password of the header Authorization; None if it is something else."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    username, colon, password = text.partition(":")
    return (username, password) if colon and username and password and "\0" not in text else None


def _unauthorized() -> HttpResponse:
    return HttpResponse(HTTPStatus.UNAUTHORIZED, "Unauthorized\n", headers=CHALLENGE)
