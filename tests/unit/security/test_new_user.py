"""The grammar of --add-scram, with the errors of Apache Kafka's kafka-storage."""

from __future__ import annotations

import base64

import pytest

from barnabas.errors import IllegalArgument
from barnabas.security.new_user import NewUser
from barnabas.security.scram import ScramCredential, salted_password

SALT = base64.b64encode(b"a salt").decode()


def test_a_password_is_salted() -> None:
    user = NewUser.parse(f"SCRAM-SHA-256=[name=alice,salt={SALT},iterations=8192,password=secret]")
    assert user == NewUser("alice", "SCRAM-SHA-256", ScramCredential.of_password("SCRAM-SHA-256", "secret", b"a salt", 8192))


def test_each_user_has_a_salt_of_its_own_and_4096_iterations_by_default() -> None:
    first, second = (NewUser.parse(' SCRAM-SHA-512=[name="al ice",password="a=b"] ') for _ in range(2))
    assert (first.name, first.credential.iterations) == ("al ice", 4096)
    assert first.credential.salt != second.credential.salt
    assert first.credential == ScramCredential.of_password("SCRAM-SHA-512", "a=b", first.credential.salt, 4096)


def test_the_salted_password_takes_the_place_of_the_password() -> None:
    salted = base64.b64encode(salted_password("SCRAM-SHA-256", b"secret", b"a salt", 4096)).decode()
    user = NewUser.parse(f"SCRAM-SHA-256=[name=alice,salt={SALT},saltedpassword={salted}]")
    assert user.credential == ScramCredential.of_password("SCRAM-SHA-256", "secret", b"a salt", 4096)


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a,password=geheim]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("SCRAM-SHA-256=name=a,password=geheim", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=geheim", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[password=geheim]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=geheim]", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,salt=!,password=geheim]", "Failed to decode given salt: it is not base64"),
        (f"SCRAM-SHA-256=[name=a,salt={SALT},saltedpassword=geheim!]", "Failed to decode given saltedPassword: it is not base64"),
        ("SCRAM-SHA-256=[name=a,iterations=x,password=geheim]", "Failed to parse iterations count: x"),
        (
            "SCRAM-SHA-256=[name=a,iterations=4095,password=geheim]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-512=[name=a,iterations=16385,password=geheim]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM-SHA-512",
        ),
        ("SCRAM-SHA-256=[name=a,password=geheim,unknown=1]", "Unknown SCRAM configurations: unknown"),
        ("SCRAM-SHA-256=[name=a,password=geh,eim]", "No equals sign found in SCRAM component; a value cannot have a comma"),
    ],
)
def test_a_wrong_argument_is_refused_without_its_secret(argument: str, error: str) -> None:
    with pytest.raises(IllegalArgument) as raised:
        NewUser.parse(argument)
    assert str(raised.value) == error
    assert "geh" not in str(raised.value)
