"""The segments of a log."""
