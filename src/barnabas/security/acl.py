"""The values of access control lists: which principal may do which operation on which resource from which host, and filters over them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from barnabas.security.operations import AclOperation

ANY_NAME: Final = "*"


class ResourceType(IntEnum):
    """What an ACL is about, with Kafka's numbers. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @classmethod
    def from_code(cls, code: int) -> ResourceType:
        """The resource type with this number; UNKNOWN for a number that this client does not know."""
        return cls(code) if 0 <= code <= cls.USER else cls.UNKNOWN

    @classmethod
    def from_string(cls, text: str) -> ResourceType:
        """The resource type of a name in any case (`TransactionalId` and `TRANSACTIONAL_ID` alike); UNKNOWN for any other text."""
        name = text.replace("_", "").upper()
        return next((resource_type for resource_type in cls if resource_type.name.replace("_", "") == name), cls.UNKNOWN)

    @property
    def title(self) -> str:
        """The name in znodes and in the audit log: TransactionalId."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class PatternType(IntEnum):
    """How a resource name is interpreted. MATCH is only for filters: it selects every pattern that applies to a resource of that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @classmethod
    def from_code(cls, code: int) -> PatternType:
        """The pattern type with this number; UNKNOWN for a number that this client does not know."""
        return cls(code) if 0 <= code <= cls.PREFIXED else cls.UNKNOWN

    @property
    def is_specific(self) -> bool:
        """Whether it stands in an ACL: ANY and MATCH are for filters."""
        return self in (PatternType.LITERAL, PatternType.PREFIXED)


class AclPermissionType(IntEnum):
    """Whether an ACL allows or denies, with Kafka's numbers. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3

    @classmethod
    def from_code(cls, code: int) -> AclPermissionType:
        """The permission type with this number; UNKNOWN for a number that this client does not know."""
        return cls(code) if 0 <= code <= cls.ALLOW else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """Resources by type and name. The LITERAL name `*` matches every name."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    WILDCARD_RESOURCE: ClassVar[str] = ANY_NAME

    def to_filter(self) -> ResourcePatternFilter:
        """The filter that matches this pattern alone."""
        return ResourcePatternFilter(self.resource_type, self.name, self.pattern_type)

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name}, patternType={self.pattern_type.name})"


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """A principal (`User:alice`, `User:*`), a host (`*` for any), an operation, and whether the operation is allowed or denied."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def to_filter(self) -> AccessControlEntryFilter:
        """The filter that matches this entry alone."""
        return AccessControlEntryFilter(self.principal, self.host, self.operation, self.permission_type)

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, permissionType={self.permission_type.name})"
        )


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """None and ANY match everything."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: ResourcePattern) -> bool:
        """Whether a pattern is one of those that are meant."""
        if self.resource_type is not ResourceType.ANY and self.resource_type is not pattern.resource_type:
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH) and self.pattern_type is not pattern.pattern_type:
            return False
        if self.name is None:
            return True
        if self.pattern_type is PatternType.MATCH:
            if pattern.pattern_type is PatternType.PREFIXED:
                return self.name.startswith(pattern.name)
            return pattern.name in (self.name, ANY_NAME)
        return self.name == pattern.name


@dataclass(frozen=True, slots=True)
class AccessControlEntryFilter:
    """None and ANY match everything."""

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether an entry has all that this filter names."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One ACL: a resource pattern and an access control entry."""

    pattern: ResourcePattern
    entry: AccessControlEntry

    @property
    def is_unknown(self) -> bool:
        """Whether it holds what this client does not know, which cannot be sent."""
        return self.to_filter().is_unknown

    def to_filter(self) -> AclBindingFilter:
        """The filter that matches this ACL and no other."""
        return AclBindingFilter(self.pattern.to_filter(), self.entry.to_filter())

    def __str__(self) -> str:
        return f"(pattern={self.pattern}, entry={self.entry})"


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Which ACLs are meant: those whose resource and entry both match.

        admin.describe_acls(AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, "orders")))

    Without arguments it matches all.
    """

    pattern_filter: ResourcePatternFilter = ResourcePatternFilter()
    entry_filter: AccessControlEntryFilter = AccessControlEntryFilter()

    ANY: ClassVar[AclBindingFilter]

    @property
    def is_unknown(self) -> bool:
        """Whether a field is UNKNOWN. Such a filter cannot be sent."""
        pattern, entry = self.pattern_filter, self.entry_filter
        return not all((pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type))

    @property
    def matches_at_most_one(self) -> bool:
        """Whether everything is named, so that it means one ACL."""
        return self.indefinite_field() is None

    def indefinite_field(self) -> str | None:
        """Why the filter may match more than one ACL, in Kafka's words; None if it matches at most one."""
        pattern, entry = self.pattern_filter, self.entry_filter
        if pattern.resource_type in (ResourceType.ANY, ResourceType.UNKNOWN):
            return f"Resource type is {pattern.resource_type.name}."
        if pattern.name is None:
            return "Resource name is NULL."
        if not pattern.pattern_type.is_specific:
            return f"Resource pattern type is {pattern.pattern_type.name}."
        if entry.principal is None:
            return "Principal is NULL"
        if entry.host is None:
            return "Host is NULL"
        if entry.operation in (AclOperation.ANY, AclOperation.UNKNOWN):
            return f"Operation is {entry.operation.name}"
        if entry.permission_type in (AclPermissionType.ANY, AclPermissionType.UNKNOWN):
            return f"Permission type is {entry.permission_type.name}"
        return None

    def matches(self, binding: AclBinding) -> bool:
        """Whether an ACL is one of those that are meant."""
        return self.pattern_filter.matches(binding.pattern) and self.entry_filter.matches(binding.entry)


AclBindingFilter.ANY = AclBindingFilter()
