"""What outlives a process: file contents by digest, and the one SQL store."""
