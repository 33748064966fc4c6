"""Protobuf values."""
