"""The transaction coordinator as a part of the broker: end markers, partition verification, producer ids."""
