"""A partition on this broker: its log, its in-sync replicas, appends, reads and offset queries."""
