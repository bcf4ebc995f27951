"""One topic per file; knows no app."""
