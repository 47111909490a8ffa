"""The workflow that publishes images says to the script only what the script takes."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
import contained

sys.path.pop(0)

WORKFLOW: dict[Any, Any] = yaml.safe_load((contained.ROOT / ".github" / "workflows" / "images.yml").read_text())
JOB = WORKFLOW["jobs"]["image"]


def test_it_builds_every_image() -> None:
    assert JOB["strategy"]["matrix"]["name"] == [*contained.build_images.known_images()]


def test_actions_are_pinned_by_version() -> None:
    used = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", each) for each in used), used


def test_the_script_takes_what_each_step_says_to_it() -> None:
    lines = [
        line.strip() for step in JOB["steps"] for line in step.get("run", "").splitlines() if "scripts/images" in line
    ]
    told = [contained.build_images.parse(shlex.split(line.replace("$TAGS", "commit,latest"))[1:]) for line in lines]
    assert [each.names for each in told] == [["$IMAGE"], ["$IMAGE"]]
    assert [each.push for each in told] == [False, True]


def test_a_commit_never_takes_the_name_of_a_release() -> None:
    (publish,) = [step for step in JOB["steps"] if "--push" in step.get("run", "")]
    release, commit = re.findall(r"'([a-z,]+)'", publish["env"]["TAGS"])
    assert "startsWith(github.ref, 'refs/tags/v') &&" in publish["env"]["TAGS"]
    assert (release, commit) == ("version,commit", "commit,latest")


def test_what_people_write_reaches_the_shell_as_variables_only() -> None:
    assert not [step["run"] for step in JOB["steps"] if "${{" in step.get("run", "")]


def test_only_packages_may_be_written() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert JOB["permissions"] == {"contents": "read", "packages": "write"}
