"""OAUTHBEARER on the broker's side: the exchange, the checks of a token, and the keys that its signature is checked with."""
