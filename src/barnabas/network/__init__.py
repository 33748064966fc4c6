"""Sockets and frames: the front door of the broker. It knows bytes and order, and nothing of messages."""
