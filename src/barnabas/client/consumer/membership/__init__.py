"""A consumer as a group member, with the classic protocol and with the consumer protocol (KIP-848)."""
