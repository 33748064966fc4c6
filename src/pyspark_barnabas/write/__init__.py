"""Writing topics, at least once: Arrow columns are encoded into record batches and sent to their leaders."""
