"""CSV values."""
