"""Kafka's purgatories: operations that complete on an event or at a timeout, and the timer behind them."""
