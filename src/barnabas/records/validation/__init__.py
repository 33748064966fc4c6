"""What a leader checks and sets in records before they enter its log."""
