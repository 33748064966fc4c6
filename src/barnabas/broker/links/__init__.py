"""Connections of this broker to the other brokers."""
