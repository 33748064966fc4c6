"""The operations that an ACL allows or denies, and the bit field in which a broker returns the operations that the caller may do."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_NOT_RETURNED: Final = -(2**31)


class AclOperation(IntEnum):
    """What an ACL allows or denies, with Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @classmethod
    def from_code(cls, code: int) -> AclOperation:
        """The operation with this number; UNKNOWN for a number that this client does not know."""
        return _BY_CODE.get(code, cls.UNKNOWN)

    @classmethod
    def from_string(cls, text: str) -> AclOperation:
        """The operation of a name in any case (`DescribeConfigs` and `DESCRIBE_CONFIGS` alike); UNKNOWN for any other text."""
        return _BY_NAME.get(text.replace("_", "").upper(), cls.UNKNOWN)

    @property
    def title(self) -> str:
        """The name as Kafka's tools print it: DescribeConfigs."""
        return "".join(word.capitalize() for word in self.name.split("_"))


# Which allowed operations imply another. A denied operation implies nothing: a principal that may not read may still describe.
IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
_BY_CODE: Final = {int(operation): operation for operation in AclOperation}
_BY_NAME: Final = {operation.name.replace("_", ""): operation for operation in AclOperation}


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """The operations of a bit field; None if they were not requested, or if the broker is too old to return them."""
    if bits == _NOT_RETURNED:
        return None
    return frozenset(
        operation
        for operation in AclOperation
        if bits >> operation & 1 and operation not in (AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL)
    )
