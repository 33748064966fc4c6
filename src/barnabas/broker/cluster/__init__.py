"""This broker as a member of a cluster: registration, the controller's channels, control requests, controlled shutdown."""
