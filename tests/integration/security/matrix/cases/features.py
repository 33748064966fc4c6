"""Feature levels, and brokers that are gone for good."""

from __future__ import annotations

from barnabas.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.security.operations import AclOperation
from tests.integration.security.matrix.case import Acl, Case, Cell, on_cluster

_UNKNOWN_BROKER = 99
_SAME = FeatureUpdateKey("group.version", 1)  # the level that both brokers have
_UNKNOWN = FeatureUpdateKey("cats", 1)


def _right(cell: Cell) -> list[Acl]:
    return [on_cluster(AclOperation.ALTER)]


CASES = (
    Case("UpdateFeatures", (0, 1, 2), lambda cell: UpdateFeaturesRequest(1000, [_SAME]), _right),
    Case("UpdateFeatures of an unknown one", (2,), lambda cell: UpdateFeaturesRequest(1000, [_UNKNOWN]), _right),
    Case("UnregisterBroker", (0,), lambda cell: UnregisterBrokerRequest(_UNKNOWN_BROKER), _right),
)
