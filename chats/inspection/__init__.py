"""Draw what operators see of a turn, and let them try an assistant."""
