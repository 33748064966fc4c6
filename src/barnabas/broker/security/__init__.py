"""Who may connect to this broker, and what they may do."""
