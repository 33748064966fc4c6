"""TLS of the listeners: their contexts, and certificates that change while the broker runs."""
