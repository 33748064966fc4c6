"""Idempotence and transactions of a producer."""
