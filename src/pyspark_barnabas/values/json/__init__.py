"""JSON values."""
