"""Register the pages of accounts, one module for each kind; importing this package registers all."""

from accounts.admin import api_keys, audit_log, groups, mails, organizations, signing_in, users

__all__ = ["api_keys", "audit_log", "groups", "mails", "organizations", "signing_in", "users"]
