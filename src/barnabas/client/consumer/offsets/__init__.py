"""Offsets of a consumer: positions, commits and resets."""
