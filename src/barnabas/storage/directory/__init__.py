"""What is in a log directory besides the logs: identity, checkpoints, markers."""
