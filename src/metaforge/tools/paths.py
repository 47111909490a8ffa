"""Mark arguments that name files, so that the server can judge them before anything runs.

A tool says `Annotated[str, InputPath]`; the schema carries `format: input-path`, and the pipeline refuses
what does not resolve inside the workspace. The tool receives the path relative to the workspace.
"""

from typing import Annotated

from pydantic import Field

INPUT_PATH = "input-path"
OUTPUT_PATH = "output-path"
OUTPUT_FOLDER = "output-folder"

InputPath = Annotated[str, Field(json_schema_extra={"format": INPUT_PATH})]
"""A file that must exist in the workspace."""
OutputPath = Annotated[str, Field(json_schema_extra={"format": OUTPUT_PATH})]
"""A file to be written into the workspace."""
OutputFolder = Annotated[str, Field(json_schema_extra={"format": OUTPUT_FOLDER})]
"""A folder of the workspace for several files; it may exist."""
