"""One tools/call's way through: nine stages, one file each."""
