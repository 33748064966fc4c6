"""Access control lists: added, found and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.client.admin.access.acl_values import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.client.admin.access.operations import AclOperation
from barnabas.client.admin.call import Answer
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


@dataclass(frozen=True, slots=True)
class FilterResult:
    """A rule that a filter found; `error` says why it could not be deleted."""

    binding: AclBinding
    error: KafkaError | None = None


class AclCalls:
    """Adds, finds and deletes access control lists."""

    _calls: Calls

    async def describe_acls(self, filter: AclBindingFilter = AclBindingFilter.ANY, *, timeout_ms: int | None = None) -> list[AclBinding]:
        """The rules that match a filter; all of them by default."""
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
        return await self._calls.ask(call, self._calls.any_node, lambda _: request, read)

    async def create_acls(self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None) -> Outcomes[AclBinding, None]:
        """Adds rules. One that is there already is no error."""
        wanted = list(dict.fromkeys(acls))
        refused: dict[AclBinding, KafkaError] = {}
        for binding in wanted:
            if (indefinite := binding.to_filter().indefinite_field()) is not None:
                refused[binding] = InvalidRequest(f"Invalid ACL creation: {indefinite}")
        sent = [binding for binding in wanted if binding not in refused]

        def build(_: int, bindings: Sequence[AclBinding]) -> Message:
            return CreateAclsRequest([_creation(binding) for binding in bindings])

        def read(response: CreateAclsResponse) -> Answer[AclBinding, None]:
            answer: Answer[AclBinding, None] = Answer()
            for binding, result in zip(sent, response.results, strict=False):
                if result.error_code:
                    answer.failed[binding] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[binding] = None
            return answer

        call = self._calls.begin("create_acls", timeout_ms)
        return await self._calls.ask_about(call, wanted, self._calls.any_node, build, read, refused)

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> Outcomes[AclBindingFilter, list[FilterResult]]:
        """Deletes all rules that match any of the filters; gives for each filter those that it found."""
        wanted = list(dict.fromkeys(filters))
        unknown = InvalidRequest("The AclBindingFilter must not contain UNKNOWN elements.")
        refused: dict[AclBindingFilter, KafkaError] = {one: unknown for one in wanted if one.is_unknown}
        sent = [one for one in wanted if one not in refused]

        def build(_: int, asked: Sequence[AclBindingFilter]) -> Message:
            return DeleteAclsRequest([_deletion(one) for one in asked])

        def read(response: DeleteAclsResponse) -> Answer[AclBindingFilter, list[FilterResult]]:
            answer: Answer[AclBindingFilter, list[FilterResult]] = Answer()
            for one, result in zip(sent, response.filter_results, strict=False):
                if result.error_code:
                    answer.failed[one] = error_for(result.error_code, result.error_message)
                else:
                    answer.done[one] = [_deleted(acl) for acl in result.matching_acls]
            return answer

        call = self._calls.begin("delete_acls", timeout_ms)
        return await self._calls.ask_about(call, wanted, self._calls.any_node, build, read, refused)


def _creation(binding: AclBinding) -> AclCreation:
    pattern, entry = binding.pattern, binding.entry
    return AclCreation(
        pattern.resource_type, pattern.name, pattern.pattern_type, entry.principal, entry.host, entry.operation, entry.permission_type
    )


def _deletion(one: AclBindingFilter) -> DeleteAclsFilter:
    pattern, entry = one.pattern_filter, one.entry_filter
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
