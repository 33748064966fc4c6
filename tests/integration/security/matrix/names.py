"""The resources of the matrix. Exactly the right ACLs are on the first of each kind; nobody but the super user may touch the others."""

from __future__ import annotations

from barnabas.uuid import Uuid

TOPIC = "topic"
OTHER = "other"
MISSING = "missing"  # a topic that does not exist
MISSING_ID = Uuid(b"a missing topic!")
GROUP = "group"
OTHER_GROUP = "other-group"
MISSING_GROUP = "missing-group"
GROUP_WITHOUT_OFFSETS = "group-without-offsets"  # the first that may deletes its offsets
CONSUMER_GROUP = "consumer-group"  # its member subscribes to TOPIC
WIDE_CONSUMER_GROUP = "wide-consumer-group"  # its member subscribes to TOPIC and OTHER
TRANSACTION = "transaction"  # an open transaction on TOPIC and OTHER
OTHER_TRANSACTION = "other-transaction"
MISSING_TRANSACTION = "missing-transaction"
TOKEN_OWNER = "token-owner"
RENEWER = "token-renewer"
SCRAM_USER = "scram-user"  # has credentials
ACL_USER = "acl-user"  # has one ACL, to be described

RESOURCES = frozenset(
    {TOPIC, OTHER, GROUP, OTHER_GROUP, CONSUMER_GROUP, WIDE_CONSUMER_GROUP, TRANSACTION, OTHER_TRANSACTION, TOKEN_OWNER, RENEWER}
)
USERS = (TOKEN_OWNER, RENEWER)  # beside those of the cells
