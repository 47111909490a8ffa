"""What MetaForge costs, measured against bare programs that do the same with nothing around it."""
