"""The parts of the log manager: loading, flushes, checkpoints and the syncs of log directories."""
