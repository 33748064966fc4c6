"""The pages of groups: the list, one group, and resets of its offsets."""
