"""The broker: what stands between the requests of clients and the logs on disk."""
