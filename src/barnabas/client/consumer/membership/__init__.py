"""A consumer as a member of its group, by the classic protocol and by KIP-848."""
