"""Topics: creation, deletion, the metadata cache, and feature levels."""
