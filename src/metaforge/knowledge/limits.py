"""What a document may be, so that reading it always ends. Beyond a limit it is refused with the number."""

MAX_FILE_BYTES = 64 << 20
"""Of formats that hold pictures beside their text: PDF, DOCX; and of STEP."""
MAX_TEXT_BYTES = 16 << 20
"""Of formats that are text."""
MAX_HERE_BYTES = 256 << 10
"""Text up to this size is read in the caller's own process."""
MAX_PAGES = 2_000
MAX_PASSAGES = 50_000
MAX_UNPACKED_BYTES = 256 << 20
"""Of a DOCX, all its parts together."""
MAX_PART_BYTES = 64 << 20
"""Of a DOCX, the one part that is its text."""
MAX_PARTS = 10_000
MAX_ANSWER_BYTES = 128 << 20
MEMORY_MB = 1024
"""What reading one document may allocate, in a process of its own."""
CPU_SECONDS = 300
WALL_SECONDS = 600.0
