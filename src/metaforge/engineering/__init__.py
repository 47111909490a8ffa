"""What several adapters share inside their own processes: programs, meshes, materials, guards, pictures."""
