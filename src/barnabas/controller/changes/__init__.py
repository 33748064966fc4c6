"""What the controller does on each kind of event."""
