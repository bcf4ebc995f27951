"""Store and index the documents people give their assistants: files, libraries, chunks, vectors."""
