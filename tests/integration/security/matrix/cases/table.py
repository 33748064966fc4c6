"""All cases of the matrix."""

from __future__ import annotations

from tests.integration.security.matrix.cases import brokers, configs, groups, records, security, topics, transactions

CASES = (
    *topics.CASES,
    *records.CASES,
    *groups.CASES,
    *transactions.CASES,
    *configs.CASES,
    *security.CASES,
    *brokers.CASES,
)
