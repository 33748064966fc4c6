"""Avro values."""
