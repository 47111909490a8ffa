"""What documents say: read into passages, kept in the store, found by meaning and by word."""
