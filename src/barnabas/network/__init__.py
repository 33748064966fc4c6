"""The network layer of the broker: sockets and frames. It handles bytes and their order, and does not parse messages."""
