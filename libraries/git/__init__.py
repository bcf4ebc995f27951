"""Git repositories as sources: fetched under guard, unpacked in a child, read without a checkout."""
