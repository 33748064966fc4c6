"""Authorizers as a user may write them."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.security.authorizer.authorizer import Action, Authorizer
from barnabas.broker.security.session import Session


class OnlyFrom(Authorizer):
    """Allows everything to clients of one host."""

    def __init__(self) -> None:
        self.host = ""

    def configure(self, properties: Mapping[str, str]) -> None:
        self.host = properties["only.from"]

    def authorize(self, session: Session, action: Action) -> bool:
        return session.host == self.host


class NotAnAuthorizer:
    pass


class NeedsArguments(Authorizer):
    def __init__(self, argument: str) -> None:
        self.argument = argument
