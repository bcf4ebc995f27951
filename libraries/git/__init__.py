"""Import Git repositories: fetch under guard, unpack in a child, read without a checkout."""
