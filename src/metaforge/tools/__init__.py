"""What a tool is: the words shared by adapters, registry, engine and pipeline."""
