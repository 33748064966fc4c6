"""Log directories without a broker: read as rows, and audited."""
