"""Running brokers: settings, logs, exit codes."""
