"""Offsets of a consumer: positions, commits, resets."""
