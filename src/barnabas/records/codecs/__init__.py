"""Variable-length integers and compression."""
