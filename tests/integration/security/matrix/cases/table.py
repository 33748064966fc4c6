"""All cases of the matrix."""

from __future__ import annotations

from tests.integration.security.matrix.cases import brokers, configs, features, groups, records, security, telemetry, topics, transactions

CASES = (
    *topics.CASES,
    *records.CASES,
    *groups.CASES,
    *transactions.CASES,
    *configs.CASES,
    *security.CASES,
    *brokers.CASES,
    *telemetry.CASES,
    *features.CASES,
)
