"""Documents people give their assistants: files, libraries, chunks, vectors."""
