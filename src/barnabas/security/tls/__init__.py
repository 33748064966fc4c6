"""TLS of brokers and clients: key and trust stores, cipher suites, and the contexts that are made of them."""
