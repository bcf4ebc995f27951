"""Functions an assistant may call, behind one protocol."""
