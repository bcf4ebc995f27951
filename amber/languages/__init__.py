"""Pages in the language of who reads them; what programs read stays English."""
