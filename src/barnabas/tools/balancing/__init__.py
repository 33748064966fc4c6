"""Reassignments that balance or empty brokers: what brokers carry, which replicas to move, moving them; and rolling restarts."""
