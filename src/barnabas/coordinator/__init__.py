"""The coordinators: groups and transactions, each a fold over the partitions of an internal topic."""
