"""The command line: what a person without an agent uses. Nothing heavy is imported until a command runs."""
