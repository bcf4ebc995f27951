"""Chats, their messages, and the turns that answer them."""
