"""What a broker measures, as plain objects that the hot paths increment: requests and their errors, and traffic by topic."""
