"""The authorized operations of a client on a resource: the bit field of Metadata and the Describe APIs, in which bit N is operation N.

Without an authorizer every client may perform every operation of the resource.
"""

from __future__ import annotations

from typing import Final

NOT_ASKED_FOR: Final = -(2**31)  # the field if the client did not request it

_READ: Final = 1 << 3
_WRITE: Final = 1 << 4
_CREATE: Final = 1 << 5
_DELETE: Final = 1 << 6
_ALTER: Final = 1 << 7
_DESCRIBE: Final = 1 << 8
_CLUSTER_ACTION: Final = 1 << 9
_DESCRIBE_CONFIGS: Final = 1 << 10
_ALTER_CONFIGS: Final = 1 << 11
_IDEMPOTENT_WRITE: Final = 1 << 12

ALL_ON_CLUSTER: Final = _CREATE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE | _ALTER | _DESCRIBE
ALL_ON_TOPIC: Final = _READ | _WRITE | _CREATE | _DESCRIBE | _DELETE | _ALTER | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
ALL_ON_GROUP: Final = _READ | _DESCRIBE | _DELETE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
