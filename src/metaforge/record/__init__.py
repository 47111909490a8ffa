"""What was called, by whom, with what result: written before the answer, kept for good."""
