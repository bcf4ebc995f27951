"""What third parties call with a key: thin adapters onto chats."""
