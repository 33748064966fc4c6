"""All partitions of this broker: the replica manager, the followers' fetches, moves between log directories."""
