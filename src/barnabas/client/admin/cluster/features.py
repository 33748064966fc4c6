"""Features: the version ranges that brokers support, the finalized levels of the cluster, and changes to these levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls, check_controller
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.client.software import SOFTWARE_NAME, SOFTWARE_VERSION
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.update_features_response import UpdateFeaturesResponse


@dataclass(frozen=True, slots=True)
class SupportedVersionRange:
    """The versions of a feature that a broker supports."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class FinalizedVersionRange:
    """The versions of a feature that the cluster has agreed on."""

    min_version_level: int
    max_version_level: int


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    """`finalized_features_epoch` is None if the cluster has never finalized a feature."""

    finalized_features: dict[str, FinalizedVersionRange]
    finalized_features_epoch: int | None
    supported_features: dict[str, SupportedVersionRange]


class UpgradeType(IntEnum):
    """Java's FeatureUpdate.UpgradeType. UNSAFE_DOWNGRADE may lose metadata."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A new level. Level 0 disables the feature, and requires one of the downgrade types."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE

    def __post_init__(self) -> None:
        if self.max_version_level == 0 and self.upgrade_type is UpgradeType.UPGRADE:
            raise IllegalArgument(
                f"The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided maxVersionLevel:"
                f"{self.max_version_level} is < 1."
            )
        if self.max_version_level < 0:
            raise IllegalArgument("Cannot specify a negative version level.")


class FeatureCalls:
    """Describes and changes features."""

    _calls: Calls

    async def describe_features(self, *, node_id: int | None = None, timeout_ms: int | None = None) -> FeatureMetadata:
        """The features that a broker (any broker, or `node_id`) supports, and the finalized features that it reports."""
        route = self._calls.any_node if node_id is None else self._calls.node(node_id)

        def read(response: ApiVersionsResponse) -> FeatureMetadata:
            if response.error_code:
                raise error_for(response.error_code)
            return _features(response)

        call = self._calls.begin("describe_features", timeout_ms)
        return await self._calls.request(call, route, lambda _: ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION), read)

    async def update_features(
        self, feature_updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, None]:
        """Changes the levels of features for the whole cluster. Kafka 4 applies all of them or none."""
        if not feature_updates:
            raise IllegalArgument("Feature updates cannot be None or empty.")
        if any(not name.strip() for name in feature_updates):
            raise IllegalArgument("Provided feature can not be empty.")

        def build(timeout: int, names: Sequence[str]) -> Message:
            updates = [
                FeatureUpdateKey(name, feature_updates[name].max_version_level, upgrade_type=feature_updates[name].upgrade_type)
                for name in names
            ]
            return UpdateFeaturesRequest(timeout, updates, validate_only)

        def older(timeout: int, names: Sequence[str]) -> Message | None:
            if validate_only or any(feature_updates[name].upgrade_type is UpgradeType.UNSAFE_DOWNGRADE for name in names):
                return None
            updates = [
                FeatureUpdateKey(
                    name, feature_updates[name].max_version_level, feature_updates[name].upgrade_type is not UpgradeType.UPGRADE
                )
                for name in names
            ]
            return UpdateFeaturesRequest(timeout, updates)

        def read(response: UpdateFeaturesResponse) -> ApiResult[str, None]:
            check_controller(response.error_code, response.error_message)
            if response.error_code:
                return ApiResult(failed=failed(feature_updates, error_for(response.error_code, response.error_message)))
            # The newest version returns one result for all features.
            answer: ApiResult[str, None] = ApiResult(dict.fromkeys(feature_updates) if not response.results else {})
            for result in response.results:
                if result.error_code:
                    answer.failed[result.feature] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[result.feature] = None
            return answer

        call = self._calls.begin("update_features", timeout_ms)
        return await self._calls.request_keys(call, feature_updates, self._calls.controller, build, read, older=older)


def _features(response: ApiVersionsResponse) -> FeatureMetadata:
    return FeatureMetadata(
        {
            feature.name: FinalizedVersionRange(feature.min_version_level, feature.max_version_level)
            for feature in response.finalized_features
        },
        None if response.finalized_features_epoch < 0 else response.finalized_features_epoch,
        {feature.name: SupportedVersionRange(feature.min_version, feature.max_version) for feature in response.supported_features},
    )
