"""Who may do what: organizations, users, memberships, keys, and the one door to a tenant's row."""
