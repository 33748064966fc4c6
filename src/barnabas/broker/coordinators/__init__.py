"""What the group and the transaction coordinator share in a broker: the partitions of their topics."""
