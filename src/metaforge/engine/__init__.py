"""Runs calls: workers started, boxed, watched and ended; their files collected."""
