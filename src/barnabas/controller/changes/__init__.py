"""The handlers of the controller's events."""
