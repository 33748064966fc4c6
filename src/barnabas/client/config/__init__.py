"""The settings of clients."""
