"""SCRAM users that exist before the first start of a broker, in the form of kafka-storage's --add-scram.

`SCRAM-SHA-256=[name=alice,password=secret]`. Optional are `iterations=` and `salt=`; `saltedpassword=` takes the place of the password.
Salt and salted password are base64.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import Final

from barnabas.errors import IllegalArgument
from barnabas.security.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, SALT_BYTES, ScramCredential, salted_password

_FIELDS: Final = ("iterations", "name", "password", "salt", "saltedpassword")


@dataclass(frozen=True, slots=True)
class NewUser:
    """`replaces` says that an existing credential of the user is replaced; otherwise it stays."""

    name: str
    mechanism: str
    credential: ScramCredential
    replaces: bool = False

    @classmethod
    def of_password(
        cls, name: str, password: str, mechanism: str = "SCRAM-SHA-512", iterations: int = ITERATIONS_MIN, replaces: bool = False
    ) -> NewUser:
        credential = ScramCredential.of_password(mechanism, password, secrets.token_bytes(SALT_BYTES), iterations)
        return cls(name, mechanism, credential, replaces)

    @classmethod
    def parse(cls, argument: str) -> NewUser:
        """Raises IllegalArgument in Kafka's words, without the secrets that Kafka repeats."""
        mechanism, equals, config = argument.strip().partition("=")
        if not equals:
            raise IllegalArgument("Failed to find equals sign in SCRAM argument")
        if mechanism not in HASHES:
            raise IllegalArgument(f"The add-scram mechanism {mechanism} is not supported.")
        if not config.startswith("["):
            raise IllegalArgument("Expected configuration string to start with [")
        if not config.endswith("]"):
            raise IllegalArgument("Expected configuration string to end with ]")
        return _of_fields(mechanism, _fields(config[1:-1]))


def _fields(config: str) -> dict[str, str]:
    """A value may stand in quotation marks. As in Kafka, no value can have a comma."""
    fields: dict[str, str] = {}
    for component in config.split(","):
        name, equals, value = component.partition("=")
        if not equals:
            raise IllegalArgument("No equals sign found in SCRAM component; a value cannot have a comma")
        fields[name] = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        raise IllegalArgument(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    return fields


def _of_fields(mechanism: str, fields: dict[str, str]) -> NewUser:
    if not fields.get("name"):
        raise IllegalArgument("You must supply 'name' to add-scram")
    salt = _decoded("salt", fields["salt"]) if "salt" in fields else secrets.token_bytes(SALT_BYTES)
    iterations = _iterations(mechanism, fields.get("iterations"))
    if "password" in fields:
        salted = salted_password(mechanism, fields["password"].encode(), salt, iterations)
    elif "saltedpassword" not in fields:
        raise IllegalArgument("You must supply one of 'password' or 'saltedpassword' to add-scram")
    elif "salt" not in fields:
        raise IllegalArgument("You must supply 'salt' with 'saltedpassword' to add-scram")
    else:
        salted = _decoded("saltedPassword", fields["saltedpassword"])
    return NewUser(fields["name"], mechanism, ScramCredential.of_salted_password(mechanism, salted, salt, iterations))


def _iterations(mechanism: str, text: str | None) -> int:
    if text is None:
        return ITERATIONS_MIN
    try:
        iterations = int(text)
    except ValueError:
        raise IllegalArgument(f"Failed to parse iterations count: {text}") from None
    if iterations < ITERATIONS_MIN:
        raise IllegalArgument(f"The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {mechanism}")
    if iterations > ITERATIONS_MAX:
        raise IllegalArgument(f"The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {mechanism}")
    return iterations


def _decoded(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise IllegalArgument(f"Failed to decode given {name}: it is not base64") from None
