"""A project to trace through, empty or with a bracket that passes every gate."""

import sys
from pathlib import Path

import pytest

from metaforge.twin.store import TwinStore

sys.path.insert(0, str(Path(__file__).parent))

from bracket_design import Design


@pytest.fixture
def design(twin: TwinStore, project_id: str) -> Design:
    return Design(twin, project_id)


@pytest.fixture
def verified(design: Design) -> Design:
    """Need, requirements and part, every requirement verified."""
    design.define("stakeholder_need", "Carry the camera", {"statement": "It carries 1 kN"})
    design.requirements(answers="NEED-CARRY-THE-CAMERA")
    design.part(0.35)
    design.evidence({"max_von_mises_mpa": 150.0}, ("CS-BRACKET#stress",))
    design.evidence({"finding": "no burr"}, ("CS-BRACKET#finish",))
    return design
