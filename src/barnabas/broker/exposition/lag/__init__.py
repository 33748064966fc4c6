"""The lag of consumer groups in seconds: the timestamp of the first record that a group has not read."""
