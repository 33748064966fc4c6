"""Which changes of an AlterUserScramCredentials request are made: Kafka 4.2's checks, in its order.

As in Kafka 4.2, a request changes one credential of a user. The tools send one request for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.errors import KafkaError
from barnabas.security.errors import DuplicateResource, ResourceNotFound, UnacceptableCredential, UnsupportedSaslMechanism
from barnabas.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramCredential

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # by the number in requests
_TWICE: Final = "A user credential cannot be altered twice in the same request"


@dataclass(frozen=True, slots=True)
class ScramChange:
    """A new credential of a user, or with None the deletion of one."""

    user: str
    mechanism: str
    credential: ScramCredential | None

    def applied(self, properties: dict[str, str]) -> dict[str, str]:
        """The configs of the user after the change. The quotas among them stay."""
        changed = {name: text for name, text in properties.items() if name != self.mechanism}
        if self.credential is None:
            if self.mechanism not in properties:
                raise _no_credential()
            return changed
        return {**changed, self.mechanism: str(self.credential)}


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential as the request has it."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user}, {self.mechanism})"


Plan = dict[str, ScramChange | KafkaError]


def plan_changes(deletions: Sequence[tuple[str, int]], upsertions: Sequence[ScramUpsertion], exists: Callable[[str, str], bool]) -> Plan:
    """The change or the error of each user. `exists` says whether a user has a credential for a mechanism."""
    plan: Plan = {}
    for user, mechanism in deletions:
        _add(plan, user, partial(_deletion, user, mechanism, exists))
    for upsertion in upsertions:
        _add(plan, upsertion.user, partial(_upsertion, upsertion))
    return plan


def _add(plan: Plan, user: str, change: Callable[[], ScramChange]) -> None:
    """The first error of a user stays."""
    planned = plan.get(user)
    if isinstance(planned, KafkaError):
        return
    if planned is not None:
        plan[user] = DuplicateResource(_TWICE)
        return
    try:
        plan[user] = change()
    except KafkaError as error:
        plan[user] = error


def _deletion(user: str, number: int, exists: Callable[[str, str], bool]) -> ScramChange:
    mechanism = _mechanism(user, number)
    if not exists(user, mechanism):
        raise _no_credential()
    return ScramChange(user, mechanism, None)


def _upsertion(upsertion: ScramUpsertion) -> ScramChange:
    mechanism = _mechanism(upsertion.user, upsertion.mechanism)
    if upsertion.iterations < ITERATIONS_MIN:
        raise UnacceptableCredential("Too few iterations")
    if upsertion.iterations > ITERATIONS_MAX:
        raise UnacceptableCredential("Too many iterations")
    credential = ScramCredential.of_salted_password(mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations)
    return ScramChange(upsertion.user, mechanism, credential)


def _mechanism(user: str, number: int) -> str:
    if not user:
        raise UnacceptableCredential("Username must not be empty")
    mechanism = MECHANISMS.get(number)
    if mechanism is None:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    return mechanism


def _no_credential() -> ResourceNotFound:
    return ResourceNotFound("Attempt to delete a user credential that does not exist")
