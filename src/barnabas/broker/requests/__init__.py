"""Requests on their way through the broker: dispatching, replies, fetch sessions."""
