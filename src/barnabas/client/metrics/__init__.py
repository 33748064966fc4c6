"""The metrics of a client, and their push to brokers (KIP-714)."""
