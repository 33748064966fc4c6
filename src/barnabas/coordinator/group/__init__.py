"""The group coordinator: members, assignments and committed offsets, kept in `__consumer_offsets`."""
