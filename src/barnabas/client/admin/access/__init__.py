"""Access control: ACLs, SCRAM credentials, delegation tokens, client quotas."""
