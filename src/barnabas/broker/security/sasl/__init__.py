"""The SASL server of the broker: mechanisms, the exchange of one connection, and the listeners that require it."""
