"""The life cycle of a broker: start, background work, shutdown, and what a broker is made of."""
