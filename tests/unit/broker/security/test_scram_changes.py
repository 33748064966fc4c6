from __future__ import annotations

import pytest

from barnabas.broker.security.scram_changes import ScramChange, ScramUpsertion, plan_changes
from barnabas.errors import KafkaError
from barnabas.security.scram import ScramCredential, salted_password

SHA_256, SHA_512 = 1, 2
SALT = b"salt"


def upsertion(user: str = "alice", mechanism: int = SHA_256, iterations: int = 4096) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, SALT, salted_password("SCRAM-SHA-256", b"secret", SALT, 4096))


def planned(
    *deletions: tuple[str, int], upsertions: tuple[ScramUpsertion, ...] = (), existing: tuple[tuple[str, str], ...] = ()
) -> dict[str, tuple[int, str] | None]:
    """The code and text of each user's error."""
    plan = plan_changes(deletions, upsertions, lambda user, mechanism: (user, mechanism) in existing)
    return {user: (change.code, str(change)) if isinstance(change, KafkaError) else None for user, change in plan.items()}


TWICE = (92, "A user credential cannot be altered twice in the same request")
MISSING = (91, "Attempt to delete a user credential that does not exist")
ALICE = (("alice", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512"))


def test_the_keys_of_a_password_are_stored() -> None:
    change = plan_changes([], [upsertion()], lambda user, mechanism: False)["alice"]
    assert change == ScramChange("alice", "SCRAM-SHA-256", ScramCredential.of_password("SCRAM-SHA-256", "secret", SALT, 4096))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (upsertion(user=""), (93, "Username must not be empty")),
        (upsertion(user="", mechanism=9), (93, "Username must not be empty")),
        (upsertion(mechanism=0), (33, "Unknown SCRAM mechanism")),
        (upsertion(mechanism=3), (33, "Unknown SCRAM mechanism")),
        (upsertion(mechanism=3, iterations=1), (33, "Unknown SCRAM mechanism")),
        (upsertion(iterations=4095), (93, "Too few iterations")),
        (upsertion(mechanism=SHA_512, iterations=-1), (93, "Too few iterations")),
        (upsertion(iterations=16385), (93, "Too many iterations")),
    ],
)
def test_a_credential_that_kafka_refuses_is_refused_with_its_error(wrong: ScramUpsertion, error: tuple[int, str]) -> None:
    assert planned(upsertions=(wrong,)) == {wrong.user: error}


def test_the_most_iterations_are_accepted() -> None:
    assert planned(upsertions=(upsertion(iterations=16384),)) == {"alice": None}


def test_only_an_existing_credential_can_be_deleted() -> None:
    assert planned(("alice", SHA_256), existing=ALICE) == {"alice": None}
    assert planned(("alice", SHA_256)) == {"alice": MISSING}
    assert planned(("", SHA_256), ("bob", 7)) == {"": (93, "Username must not be empty"), "bob": (33, "Unknown SCRAM mechanism")}


def test_one_request_changes_one_credential_of_a_user() -> None:
    """Of any mechanism: Kafka 4.2 compares the users alone."""
    assert planned(("alice", SHA_256), ("alice", SHA_512), existing=ALICE) == {"alice": TWICE}
    assert planned(upsertions=(upsertion(), upsertion(mechanism=SHA_512), upsertion())) == {"alice": TWICE}
    assert planned(("alice", SHA_256), upsertions=(upsertion(),), existing=ALICE) == {"alice": TWICE}


def test_the_first_error_of_a_user_is_the_one_in_the_response() -> None:
    assert planned(("alice", SHA_256), upsertions=(upsertion(), upsertion())) == {"alice": MISSING}
    assert planned(upsertions=(upsertion(iterations=1), upsertion())) == {"alice": (93, "Too few iterations")}


def test_the_other_users_of_a_request_are_changed() -> None:
    assert planned(("alice", SHA_256), upsertions=(upsertion("bob"),)) == {"alice": MISSING, "bob": None}


def test_quotas_stay_when_a_credential_changes() -> None:
    quotas = {"producer_byte_rate": "1024", "SCRAM-SHA-512": "other"}
    deletion = ScramChange("alice", "SCRAM-SHA-256", None)
    assert deletion.applied({**quotas, "SCRAM-SHA-256": "old"}) == quotas
    credential = ScramCredential(b"a", b"b", b"c", 4096)
    assert ScramChange("alice", "SCRAM-SHA-256", credential).applied(quotas) == {**quotas, "SCRAM-SHA-256": str(credential)}


def test_repr_shows_no_key() -> None:
    change = plan_changes([], [upsertion()], lambda user, mechanism: False)["alice"]
    assert "salt" not in repr(upsertion())
    assert repr(change) == "ScramChange(user='alice', mechanism='SCRAM-SHA-256', credential=ScramCredential(iterations=4096))"
