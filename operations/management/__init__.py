"""Commands of the platform as a whole."""
