"""Readers and writers of file formats: bytes or text in, numbers out; no I/O."""
