"""Serves third parties that call with a key, by thin adapters onto chats."""
