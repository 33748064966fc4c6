"""Which ACLs can be stored, and which filters can be applied, with Kafka's errors."""

from __future__ import annotations

from barnabas.errors import InvalidRequest, KafkaError
from barnabas.metadata import paths
from barnabas.security.acl import AclBinding, AclBindingFilter, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation


def fault_of(binding: AclBinding) -> KafkaError | None:
    """Why an ACL cannot be stored. The name of the resource is the name of a znode."""
    pattern, entry = binding.pattern, binding.entry
    if pattern.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return InvalidRequest(f"Invalid resourceType {pattern.resource_type.name}")
    if not pattern.pattern_type.is_specific:
        return InvalidRequest(f"Invalid patternType {pattern.pattern_type.name}")
    if entry.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        return InvalidRequest(f"Invalid operation {entry.operation.name}")
    if entry.permission_type not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
        return InvalidRequest(f"Invalid permissionType {entry.permission_type.name}")
    if not pattern.name:
        return InvalidRequest("Resource name should not be empty")
    if not _is_name_of_znode(pattern.name):
        return InvalidRequest(f"ACL binding contains invalid resource name: {pattern.name}")
    if ":" not in entry.principal:
        return InvalidRequest(
            f"Could not parse principal from `{entry.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def exact_patterns(acl_filter: AclBindingFilter) -> list[ResourcePattern]:
    """The patterns that a filter names by type and name; none if it does not."""
    pattern = acl_filter.pattern_filter
    if pattern.name is None or pattern.resource_type in (ResourceType.ANY, ResourceType.UNKNOWN) or not _is_name_of_znode(pattern.name):
        return []
    if pattern.pattern_type is PatternType.ANY:
        return [
            ResourcePattern(pattern.resource_type, pattern.name, pattern_type)
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        ]
    return [ResourcePattern(pattern.resource_type, pattern.name, pattern.pattern_type)] if pattern.pattern_type.is_specific else []


def fault_of_filter(acl_filter: AclBindingFilter) -> KafkaError | None:
    pattern, entry = acl_filter.pattern_filter, acl_filter.entry_filter
    if not (pattern.resource_type and pattern.pattern_type):
        return InvalidRequest("Unknown patternFilter.")
    if not (entry.operation and entry.permission_type):
        return InvalidRequest("Unknown entryFilter.")
    return None


def _is_name_of_znode(name: str) -> bool:
    return bool(name) and "/" not in name and paths.fault_in(f"/{name}") is None
