"""What broker and clients share about security: principals, ACLs, SASL formats, key stores. Nothing here talks to the network."""
