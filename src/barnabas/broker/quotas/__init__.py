"""Rates that are measured and kept within a bound: the quotas of clients and the throttles of replication."""
