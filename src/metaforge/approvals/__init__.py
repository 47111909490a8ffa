"""A person decides: what is held, who answers, and the ledger that proves it."""
