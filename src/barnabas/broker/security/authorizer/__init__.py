"""The authorizer: decides from access control lists whether a principal may perform an operation on a resource."""
