"""The identity of a client: `User:alice`."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.errors import IllegalArgument

USER_TYPE: Final = "User"


class KafkaPrincipal(NamedTuple):
    """Who a client is to the broker:

        KafkaPrincipal.parse("User:alice")

    `principal_type` is `User` unless the broker has a principal builder of its own.
    """

    principal_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """The principal of a text such as `User:alice`; raises IllegalArgument for any other form."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise IllegalArgument(f"expected a string in format principalType:principalName but got {text}")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
