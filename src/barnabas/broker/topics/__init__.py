"""Topics: creation and deletion, policies, features, and the metadata cache."""
