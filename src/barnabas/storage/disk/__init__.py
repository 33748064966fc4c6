"""The disk: files, open descriptors, and the interface that the simulator's disk shares."""
