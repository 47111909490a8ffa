"""The same kind of tools in a process of their own: what an adapter costs, and what happens when one misbehaves."""
