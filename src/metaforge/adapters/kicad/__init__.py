"""Rule checks, exports, pictures, schematics and routing with KiCad."""
