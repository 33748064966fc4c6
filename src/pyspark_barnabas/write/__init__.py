"""Writing topics, at least once: Arrow columns into record batches, and these to their leaders."""
