"""Durable facts about a user: remembered, recalled, corrected, forgotten."""
