"""Transactions while brokers and clients are killed: what was promised exactly once must be there exactly once, however it got there."""
