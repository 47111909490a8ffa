"""Scripts that misbehave: each ends alone, and the next one runs on clean ground."""

import os
import socket
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.program("cadquery")

GOOD = "result = cq.Workplane('XY').box(1, 2, 3)"

NAME_ITSELF = "import ctypes\nctypes.CDLL(None).prctl(15, b'{name}')\n"
"""By its name a process is found from outside its box; 15 is PR_SET_NAME, inherited by forks."""


@pytest.fixture(autouse=True)
def a_good_script_runs_afterwards(server: Any) -> Any:
    yield
    made = server.call("cadquery.execute_script", script=GOOD, output_path="out/good.step")
    assert not made.refused, made.text
    assert made.data["volume_mm3"] == pytest.approx(6)


def run(server: Any, script: str, **arguments: Any) -> Any:
    return server.call("cadquery.execute_script", script=script, **arguments)


def refusal(server: Any, script: str, **arguments: Any) -> str:
    text: str = server.refusal("cadquery.execute_script", script=script, **arguments)
    return text


def test_what_a_script_prints_is_returned_apart_and_never_on_the_wire(server: Any) -> None:
    script = f"import os\nprint('hello')\nos.write(1, b'raw words\\n')\n{GOOD}"
    made = run(server, script, output_path="out/printed.step")
    assert not made.refused, made.text
    assert "hello" in made.data["stdout"]
    assert server.junk == []


def test_a_script_that_loops_for_ever_is_ended_at_its_time(server: Any) -> None:
    text = refusal(server, "while True: pass", timeout_seconds=2)
    assert "2 s" in text
    assert "tool_timeout" in text


def test_a_script_that_wants_64_gb_is_told_the_limit(server: Any) -> None:
    text = refusal(server, "block = bytearray(64 * 2**30)")
    assert "memory" in text.lower()
    assert "MB" in text


def test_a_script_that_takes_memory_bit_by_bit_is_told_the_limit_too(server: Any) -> None:
    text = refusal(server, "blocks = []\nwhile True: blocks.append(bytearray(b'x' * (64 << 20)))", timeout_seconds=60)
    assert "memory" in text.lower()
    assert "MB" in text


def test_a_script_cannot_read_the_machines_own_files(server: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the recipe")
    script = (
        "def read(path):\n"
        "    try:\n"
        "        return open(path).read()\n"
        "    except OSError as fault:\n"
        "        return type(fault).__name__\n"
        f"print(read('/etc/passwd'), read({str(secret)!r}), read({str(Path.home() / '.bashrc')!r}))\n{GOOD}"
    )
    made = run(server, script, output_path="out/curious.step")
    printed = made.text if made.refused else made.data["stdout"]
    assert "the recipe" not in printed
    for line in Path("/etc/passwd").read_text().splitlines():
        if not line.startswith(("root:", "nobody:")):
            assert line not in printed


def test_a_script_that_forks_without_end_is_stopped_and_leaves_nobody(server: Any) -> None:
    name = f"fork{os.getpid()}"
    script = (
        f"{NAME_ITSELF.format(name=name)}"
        "import os, time\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(600)\n"
    )
    assert refusal(server, script, timeout_seconds=10)
    _, alive = psutil.wait_procs(named(name), timeout=5)
    assert alive == []


def test_a_script_cannot_reach_the_network_not_even_this_machine(server: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        script = (
            "import socket\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), timeout=2)\n"
            "    print('connected')\n"
            "except OSError as fault:\n"
            "    print('no way:', fault)\n"
            f"{GOOD}"
        )
        made = run(server, script, output_path="out/lonely.step")
        with pytest.raises(TimeoutError):
            listener.accept()
    assert "connected" not in (made.text if made.refused else made.data["stdout"])


def test_a_script_that_ends_its_process_is_told_apart_from_success(server: Any) -> None:
    text = refusal(server, f"import os\n{GOOD}\nos._exit(0)")
    assert "exit" in text.lower() or "ended" in text.lower()


def test_a_kernel_that_segfaults_takes_only_its_own_process_with_it(server: Any) -> None:
    text = refusal(server, "import ctypes\nctypes.string_at(0)")
    assert "11" in text or "segmentation" in text.lower()
    plain = server.refusal("fixtureproc.segfault")
    assert "11" in plain


def test_a_script_with_a_fault_is_told_its_line(server: Any) -> None:
    text = refusal(server, "a = 1\nb = a / 0\n")
    assert "line 2" in text
    assert "division by zero" in text


def test_a_script_cannot_write_into_the_workspace_behind_the_servers_back(server: Any) -> None:
    script = (
        "try:\n"
        "    open('planted.txt', 'w').write('x')\n"
        "except OSError as fault:\n"
        "    print(type(fault).__name__)\n"
        f"{GOOD}"
    )
    run(server, script, output_path="out/tidy.step")
    assert not list(server.workspace.rglob("planted.txt"))


def test_a_script_that_nests_folders_without_end_leaves_none_of_them(server: Any) -> None:
    script = f"import os\nos.chdir('/output')\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n{GOOD}"
    made = run(server, script, output_path="out/deep.step")
    # Done before anyone looked at its folder, or ended for it.
    assert not made.refused or "nested" in made.text
    assert server.outputs() == []


def test_other_calls_are_answered_while_a_script_is_at_work(server: Any) -> None:
    at_work = server.begin_call("cadquery.execute_script", script="while True: pass", timeout_seconds=4)
    for number in range(20):
        assert server.call("fixture.echo", text=str(number)).data["text"] == str(number)
    assert server.end(at_work)["isError"]


def test_a_cancelled_script_is_gone_and_gets_no_answer(server: Any) -> None:
    name = f"loop{os.getpid()}"
    script = f"{NAME_ITSELF.format(name=name)}while True: pass"
    request_id = server.begin_call("cadquery.execute_script", script=script, timeout_seconds=300)
    deadline = time.monotonic() + 60
    while not (at_work := named(name)) and time.monotonic() < deadline:
        server.call("fixture.echo", text="meanwhile")
    assert at_work, "the script did not start"
    server.notify("notifications/cancelled", requestId=request_id, reason="changed my mind")
    _, alive = psutil.wait_procs(at_work, timeout=5)
    assert alive == []
    assert server.waiting.pop(request_id).empty()


def named(name: str) -> list[psutil.Process]:
    """Return every process of the machine that bears a name."""
    return [process for process in psutil.process_iter(["name"]) if process.info["name"] == name]
