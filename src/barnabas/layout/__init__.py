"""The layout of a data directory: the number of brokers it was made for, and its conversion to another number of brokers."""
