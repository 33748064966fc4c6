"""SCRAM credentials of users: describe, set and delete. Passwords never leave this client; brokers receive salted hashes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls, check_controller
from barnabas.client.admin.keys import distinct
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import UnacceptableCredential, UnsupportedSaslMechanism, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from barnabas.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.describe_user_scram_credentials_response import CredentialInfo, DescribeUserScramCredentialsResponse

_SALT_SIZE: Final = 20


class ScramMechanism(IntEnum):
    """The mechanisms of SCRAM, with Kafka's numbers."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name as in sasl.mechanism: SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @classmethod
    def from_mechanism_name(cls, name: str) -> ScramMechanism:
        """The mechanism of a name such as SCRAM-SHA-256; UNKNOWN for another name."""
        return next((mechanism for mechanism in cls if mechanism.mechanism_name == name), cls.UNKNOWN)

    @classmethod
    def from_type(cls, number: int) -> ScramMechanism:
        """The mechanism with this number; UNKNOWN for a number that this client does not know."""
        return cls(number) if 0 <= number <= cls.SCRAM_SHA_512 else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """A credential of a user: its mechanism and number of iterations. The broker never returns the password."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True)
class UserScramCredentialsDescription:
    """The credentials of a user."""

    name: str
    credential_infos: tuple[ScramCredentialInfo, ...]


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A credential to set. The salt is random unless it is given."""

    user: str
    credential_info: ScramCredentialInfo
    password: str | bytes = field(repr=False)
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """Deletes the credential of a user for a mechanism:

        admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)])

    The user cannot authenticate with that mechanism any more.
    """

    user: str
    mechanism: ScramMechanism


Alteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


class ScramCalls:
    """Describes and changes SCRAM credentials."""

    _calls: Calls

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Outcomes[str, UserScramCredentialsDescription]:
        """The mechanisms and iteration counts of the credentials of all users, or of the given users.

        Raises an error that concerns the request as a whole; a user without credentials has the error ResourceNotFound.
        """
        requested_users = None if users is None else [UserName(user) for user in distinct(users)]

        def read(response: DescribeUserScramCredentialsResponse) -> Outcomes[str, UserScramCredentialsDescription]:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            descriptions: dict[str, UserScramCredentialsDescription] = {}
            errors: dict[str, KafkaError] = {}
            for result in response.results:
                if result.error_code:
                    errors[result.user] = error_for(result.error_code, result.error_message)
                else:
                    infos = tuple(
                        ScramCredentialInfo(ScramMechanism.from_type(info.mechanism), info.iterations) for info in result.credential_infos
                    )
                    descriptions[result.user] = UserScramCredentialsDescription(result.user, infos)
            return Outcomes([result.user for result in response.results], descriptions, errors)

        call = self._calls.begin("describe_user_scram_credentials", timeout_ms)
        return await self._calls.request_from_node(
            call, self._calls.any_node, lambda _: DescribeUserScramCredentialsRequest(requested_users), read
        )

    async def alter_user_scram_credentials(
        self, alterations: Iterable[Alteration], *, timeout_ms: int | None = None
    ) -> Outcomes[str, None]:
        """Sets and deletes credentials. All changes of a user succeed or fail together."""
        by_user: dict[str, list[Alteration]] = {}
        for alteration in alterations:
            by_user.setdefault(alteration.user, []).append(alteration)
        refused = {user: error for user, changes in by_user.items() for error in map(_refusal, changes) if error is not None}
        deletions: list[ScramCredentialDeletion] = []
        upsertions: list[ScramCredentialUpsertion] = []
        for user, changes in by_user.items():
            for change in changes if user not in refused else ():
                if isinstance(change, UserScramCredentialDeletion):
                    deletions.append(ScramCredentialDeletion(user, change.mechanism))
                else:
                    upsertions.append(_upsertion(change))

        def build(_: int, __: Sequence[str]) -> Message:
            return AlterUserScramCredentialsRequest(deletions, upsertions)

        def read(response: AlterUserScramCredentialsResponse) -> ApiResult[str, None]:
            answer: ApiResult[str, None] = ApiResult()
            for result in response.results:
                check_controller(result.error_code, result.error_message)
                if result.error_code:
                    answer.failed[result.user] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[result.user] = None
            return answer

        call = self._calls.begin("alter_user_scram_credentials", timeout_ms)
        return await self._calls.request_keys(call, by_user, self._calls.controller, build, read, refused)


def _info(info: CredentialInfo) -> ScramCredentialInfo:
    return ScramCredentialInfo(ScramMechanism.from_type(info.mechanism), info.iterations)


def _refusal(change: Alteration) -> KafkaError | None:
    """An error that the client finds before it sends the request; None if there is none."""
    if not change.user:
        return UnacceptableCredential("Username must not be empty")
    if isinstance(change, UserScramCredentialDeletion):
        return UnsupportedSaslMechanism("Unknown SCRAM mechanism") if change.mechanism is ScramMechanism.UNKNOWN else None
    if not change.password:
        return UnacceptableCredential("Password must not be empty")
    return UnsupportedSaslMechanism("Unknown SCRAM mechanism") if change.credential_info.mechanism is ScramMechanism.UNKNOWN else None


def _upsertion(change: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_SIZE) if change.salt is None else change.salt
    info = change.credential_info
    return ScramCredentialUpsertion(change.user, info.mechanism, info.iterations, salt, salted_password(change, salt))


def salted_password(change: UserScramCredentialUpsertion, salt: bytes) -> bytes:
    """RFC 5802's Hi(password, salt, iterations). The broker receives only this value, not the password."""
    password = change.password.encode() if isinstance(change.password, str) else change.password
    digest = "sha256" if change.credential_info.mechanism is ScramMechanism.SCRAM_SHA_256 else "sha512"
    return hashlib.pbkdf2_hmac(digest, password, salt, max(change.credential_info.iterations, 1))
