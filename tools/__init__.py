"""Offer assistants functions to call, behind one protocol."""
