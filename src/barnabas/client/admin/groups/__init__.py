"""Groups of all types."""
