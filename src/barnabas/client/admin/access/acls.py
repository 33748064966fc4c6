"""Admin calls that create, describe and delete ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.client.admin.call import ApiResult
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import error_for
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_acls_response import CreateAclsResponse
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_acls_response import DeleteAclsMatchingAcl, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.describe_acls_response import DescribeAclsResponse
from barnabas.security.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.security.operations import AclOperation


@dataclass(frozen=True, slots=True)
class FilterResult:
    """An ACL that a filter matched; `error` says why it could not be deleted."""

    binding: AclBinding
    error: KafkaError | None = None


class AclCalls:
    """Creates, describes and deletes ACLs."""

    _calls: Calls

    async def describe_acls(self, filter: AclBindingFilter = AclBindingFilter.ANY, *, timeout_ms: int | None = None) -> list[AclBinding]:
        """The ACLs that match a filter; all ACLs by default."""
        if filter.is_unknown:
            raise InvalidRequest("The AclBindingFilter must not contain UNKNOWN elements.")
        pattern, entry = filter.pattern_filter, filter.entry_filter
        request = DescribeAclsRequest(
            pattern.resource_type, pattern.name, pattern.pattern_type, entry.principal, entry.host, entry.operation, entry.permission_type
        )

        def read(response: DescribeAclsResponse) -> list[AclBinding]:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            return [
                _binding(
                    resource.resource_type, resource.resource_name, resource.pattern_type,
                    acl.principal, acl.host, acl.operation, acl.permission_type,
                )
                for resource in response.resources
                for acl in resource.acls
            ]  # fmt: skip

        call = self._calls.begin("describe_acls", timeout_ms)
        return await self._calls.request(call, self._calls.any_node, lambda _: request, read)

    async def create_acls(self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None) -> Outcomes[AclBinding, None]:
        """Creates ACLs. Creating an ACL that already exists is not an error."""
        bindings_to_create = list(dict.fromkeys(acls))
        refused: dict[AclBinding, KafkaError] = {}
        for binding in bindings_to_create:
            if (indefinite := binding.to_filter().indefinite_field()) is not None:
                refused[binding] = InvalidRequest(f"Invalid ACL creation: {indefinite}")
        sent = [binding for binding in bindings_to_create if binding not in refused]

        def build(_: int, bindings: Sequence[AclBinding]) -> Message:
            return CreateAclsRequest([_creation(binding) for binding in bindings])

        def read(response: CreateAclsResponse) -> ApiResult[AclBinding, None]:
            answer: ApiResult[AclBinding, None] = ApiResult()
            for binding, result in zip(sent, response.results, strict=False):
                if result.error_code:
                    answer.failed[binding] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[binding] = None
            return answer

        call = self._calls.begin("create_acls", timeout_ms)
        return await self._calls.request_keys(call, bindings_to_create, self._calls.any_node, build, read, refused)

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> Outcomes[AclBindingFilter, list[FilterResult]]:
        """Deletes all ACLs that match any of the filters; returns the matched ACLs for each filter."""
        distinct_filters = list(dict.fromkeys(filters))
        unknown = InvalidRequest("The AclBindingFilter must not contain UNKNOWN elements.")
        refused: dict[AclBindingFilter, KafkaError] = {acl_filter: unknown for acl_filter in distinct_filters if acl_filter.is_unknown}
        sent = [acl_filter for acl_filter in distinct_filters if acl_filter not in refused]

        def build(_: int, batch: Sequence[AclBindingFilter]) -> Message:
            return DeleteAclsRequest([_deletion(acl_filter) for acl_filter in batch])

        def read(response: DeleteAclsResponse) -> ApiResult[AclBindingFilter, list[FilterResult]]:
            answer: ApiResult[AclBindingFilter, list[FilterResult]] = ApiResult()
            for acl_filter, result in zip(sent, response.filter_results, strict=False):
                if result.error_code:
                    answer.failed[acl_filter] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[acl_filter] = [_deleted(acl) for acl in result.matching_acls]
            return answer

        call = self._calls.begin("delete_acls", timeout_ms)
        return await self._calls.request_keys(call, distinct_filters, self._calls.any_node, build, read, refused)


def _creation(binding: AclBinding) -> AclCreation:
    pattern, entry = binding.pattern, binding.entry
    return AclCreation(
        pattern.resource_type, pattern.name, pattern.pattern_type, entry.principal, entry.host, entry.operation, entry.permission_type
    )


def _deletion(acl_filter: AclBindingFilter) -> DeleteAclsFilter:
    pattern, entry = acl_filter.pattern_filter, acl_filter.entry_filter
    return DeleteAclsFilter(
        pattern.resource_type, pattern.name, pattern.pattern_type, entry.principal, entry.host, entry.operation, entry.permission_type
    )


def _deleted(acl: DeleteAclsMatchingAcl) -> FilterResult:
    binding = _binding(acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
    return FilterResult(binding, error_for(acl.error_code, acl.error_message) if acl.error_code else None)


def _binding(kind: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType.from_code(kind), name, PatternType.from_code(pattern)),
        AccessControlEntry(principal, host, AclOperation.from_code(operation), AclPermissionType.from_code(permission)),
    )
