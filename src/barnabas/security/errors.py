"""The errors of authentication, authorization, users and delegation tokens, with Kafka's codes.

Broker and clients share them: the broker raises them and sends their codes, a client raises the class of the code it received.
"""

from __future__ import annotations

from barnabas.errors import KafkaError


class AuthorizationError(KafkaError):
    """The principal is not authorized; a retry does not help until an administrator grants access."""


class AuthenticationError(KafkaError):
    """The credentials were rejected. Never retried automatically."""


class SaslAuthentication(AuthenticationError):
    """SASL_AUTHENTICATION_FAILED: the broker rejected the credentials."""

    code = 58


class ClusterAuthorization(AuthorizationError):
    """CLUSTER_AUTHORIZATION_FAILED: the principal may not do this to the cluster."""

    code = 31


class UnsupportedSaslMechanism(AuthenticationError):
    """UNSUPPORTED_SASL_MECHANISM: the broker does not support the mechanism of `sasl.mechanism`."""

    code = 33


class IllegalSaslState(AuthenticationError):
    """ILLEGAL_SASL_STATE: the request is not valid at this point of the authentication."""

    code = 34


class SecurityDisabled(KafkaError):
    """SECURITY_DISABLED: the broker has no authorizer."""

    code = 54


class DelegationTokenDisabled(KafkaError):
    """DELEGATION_TOKEN_AUTH_DISABLED: the broker has no delegation tokens."""

    code = 61


class DelegationTokenNotFound(KafkaError):
    """DELEGATION_TOKEN_NOT_FOUND: the broker does not know the token."""

    code = 62


class DelegationTokenOwnerMismatch(KafkaError):
    """DELEGATION_TOKEN_OWNER_MISMATCH: the principal is neither owner nor renewer of the token."""

    code = 63


class UnsupportedByAuthentication(KafkaError):
    """DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: a connection with this kind of authentication may not manage tokens."""

    code = 64


class DelegationTokenAuthorization(AuthorizationError):
    """DELEGATION_TOKEN_AUTHORIZATION_FAILED: the principal may not manage this token."""

    code = 65


class DelegationTokenExpired(KafkaError):
    """DELEGATION_TOKEN_EXPIRED: the token has expired."""

    code = 66


class InvalidPrincipalType(KafkaError):
    """INVALID_PRINCIPAL_TYPE: the type of the principal is not `User`."""

    code = 67


class ResourceNotFound(KafkaError):
    """RESOURCE_NOT_FOUND: the resource, such as a user with SCRAM credentials, does not exist."""

    code = 91


class DuplicateResource(KafkaError):
    """DUPLICATE_RESOURCE: the request names a resource twice."""

    code = 92


class UnacceptableCredential(KafkaError):
    """UNACCEPTABLE_CREDENTIAL: the credential is not acceptable: its mechanism, iterations or user name."""

    code = 93
