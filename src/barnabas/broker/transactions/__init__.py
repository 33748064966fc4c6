"""The transaction coordinator in its broker: markers, verification, producer ids."""
