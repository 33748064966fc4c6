"""The rules that make a user name: of the distinguished name in a certificate, and of a Kerberos principal."""
