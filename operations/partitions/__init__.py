"""Cut the ledger of usage up by months, on installations whose operator asks for it."""
