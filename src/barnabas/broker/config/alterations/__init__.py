"""Changes of settings by requests: what is altered, whether it may be, and what the metadata store gets."""
