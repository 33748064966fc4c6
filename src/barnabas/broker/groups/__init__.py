"""The group coordinator in its broker."""
