"""The group coordinator as a part of the broker."""
