"""A broker as one of several: registration, the controller's channels, control requests, controlled shutdown."""
