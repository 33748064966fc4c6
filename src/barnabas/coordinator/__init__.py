"""The group coordinator and the transaction coordinator. The state of each is the replay of the partitions of an internal topic."""
