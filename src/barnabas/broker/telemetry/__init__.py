"""Client telemetry (KIP-714): clients push their metrics to this broker, as the `client-metrics` configs subscribe to them."""
