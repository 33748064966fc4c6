"""The life cycle of a broker: start, background work and shutdown."""
