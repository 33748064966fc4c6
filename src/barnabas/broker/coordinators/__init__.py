"""What the group coordinator and the transaction coordinator of a broker share: access to the partitions of their topics."""
