"""The layout of a data directory: for how many brokers it was made, and how its data is converted to another number of brokers."""
