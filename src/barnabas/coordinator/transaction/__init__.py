"""The transaction coordinator: producer ids, epochs and open transactions by transactional id, kept in `__transaction_state`."""
