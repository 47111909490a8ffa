"""Words every room shares: errors, ids, the clock."""
