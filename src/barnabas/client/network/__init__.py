"""The network of a client: connections to brokers, TLS, SASL, API versions, and the metadata of the cluster."""
