"""The worker of an approved run: recognised by its key, held to its run, its project and what a run may do."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from metaforge.access.claims import ServiceKey
from metaforge.access.identity import KEY_HOLDER
from metaforge.access.judge import Access
from metaforge.access.runs import GatewayRuns, RunsUnavailable, StoreRuns
from metaforge.access.service import ServiceJudge
from metaforge.calls.call import Call
from metaforge.core.errors import ServiceRefused
from metaforge.settings import Settings
from metaforge.store.blobs import open_blobs
from metaforge.store.database import Database
from metaforge.tools.context import Caller, ServiceClaims, Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool
from metaforge.twin.model import Run
from metaforge.twin.store import TwinStore

KEY = "k" * 32
RUN = Run("run-1", "p1", "running", "flowv_1", True, "concept", "G1")


class Table:
    """Runs as a test says they are."""

    def __init__(self, run: Run | None = RUN) -> None:
        self.run = run
        self.fault = ""
        self.asked: list[str] = []

    async def find(self, run_id: str) -> Run | None:
        self.asked.append(run_id)
        if self.fault:
            raise RunsUnavailable(self.fault)
        return self.run


class Bench:
    def __init__(self) -> None:
        self.table = Table()
        self.now = 0.0
        self.judge = ServiceJudge(self.table, clock=lambda: self.now)

    async def admit(
        self,
        tool_id: str = "twin.record_decision",
        effect: Effect = Effect.WRITE,
        hold: HoldRule = HoldRule.BY_EFFECT,
        claims: ServiceClaims | None = None,
        **arguments: Any,
    ) -> Call:
        tool = Tool(tool_id, tool_id.partition(".")[0], "", "", "", {}, {}, effect=effect, hold=hold)
        caller = Caller("api-key", Trust.UNTRUSTED, "worker", "1", "s1", service=claims or ServiceClaims("run-1"))
        return await self.judge.admit(Call("c1", tool_id, arguments, caller, tool=tool, effect=effect))

    async def refused(self, code: str, **asked: Any) -> ServiceRefused:
        with pytest.raises(ServiceRefused) as refusal:
            await self.admit(**asked)
        assert refusal.value.data["code"] == code
        assert refusal.value.data["retryable"] is False
        assert code in refusal.value.message
        return refusal.value


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- authenticated, and off by default ----------------------------------------------------------------------------


def shown(key: str = KEY, run: str = "run-1", **more: str) -> dict[bytes, bytes]:
    told = {"x-metaforge-service-key": key, "x-metaforge-run": run}
    told |= {f"x-metaforge-{name}": value for name, value in more.items()}
    return {name.encode(): value.encode() for name, value in told.items()}


def test_the_key_makes_the_claims_heard():
    found = ServiceKey(KEY).serving(KEY_HOLDER, shown(phase="concept", model="opus", project="p1"))
    assert found.service == ServiceClaims("run-1", "concept", "opus", "p1")
    assert (found.trust, found.principal) == ("untrusted", "api_key"), "trust comes from the run alone"


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        (KEY, shown("wrong" * 8)), (KEY, shown("")), (KEY, {b"x-metaforge-run": b"run-1"}), (KEY, shown(run="")),
        (KEY, shown(run="r" * 201)), (KEY, shown(run="a\tb")), ("", shown("")), ("k" * 15, shown("k" * 15)),
    ],
)  # fmt: skip
def test_a_wrong_or_missing_or_short_key_is_no_error_and_no_claim(key, headers):
    assert ServiceKey(key).serving(KEY_HOLDER, headers) is KEY_HOLDER


async def test_the_service_key_is_not_the_bearer_key():
    access = Access(Settings(api_key="secret", service_key=KEY), "0.0.0.0")
    assert (await access.judge(shown())).status == 401
    assert (await access.judge(shown() | {b"authorization": b"Bearer " + KEY.encode()})).status == 401
    found = await access.judge(shown() | {b"authorization": b"Bearer secret"})
    assert found.service.run_id == "run-1"


async def test_an_open_server_hears_no_claims():
    access = Access(Settings(service_key=KEY), "127.0.0.1")
    assert (await access.judge(shown())).service is None


# -- bound to a run -----------------------------------------------------------------------------------------------


async def test_a_call_of_an_approved_run_is_its_service_callers(bench):
    claims = ServiceClaims("run-1", "concept", "opus", "p1")
    call = await bench.admit(claims=claims)
    assert (call.caller.actor_id, call.caller.trust) == ("service:design-flow:run-1", "service")
    assert (call.run_id, call.project_id, call.caller.service) == ("run-1", "p1", claims)
    assert call.notes["caller"] is call.caller


@pytest.mark.parametrize("state", ["completed", "failed", "canceled", "waiting", ""])
async def test_a_run_that_is_not_running_writes_nothing_and_is_read_within(bench, state):
    bench.table.run = Run("run-1", "p1", state, "flowv_1", True)
    await bench.refused("service_refused")
    read = await bench.admit("twin.get_node", Effect.READ)
    assert (read.run_id, read.caller.trust) == ("run-1", "untrusted")


async def test_a_run_that_is_not_there_is_refused_for_reads_too(bench):
    bench.table.run = None
    await bench.refused("service_refused")
    await bench.refused("service_refused", tool_id="twin.get_node", effect=Effect.READ)


async def test_a_version_that_nobody_approved_is_refused(bench):
    bench.table.run = Run("run-1", "p1", "running", "flowv_1", False)
    assert "flowv_1" in (await bench.refused("service_refused")).message


async def test_a_run_without_a_version_stays_untrusted_so_that_its_writes_are_held(bench):
    bench.table.run = Run("run-1", "p1", "running")
    call = await bench.admit()
    assert (call.caller.trust, call.caller.actor_id, call.run_id) == ("untrusted", "api-key", "run-1")
    assert (await bench.admit("project.create")).caller.trust == "untrusted", "held, as anybody else's"


async def test_runs_that_cannot_be_looked_up_are_refused(bench):
    bench.table.fault = "the gateway is away"
    assert "the gateway is away" in (await bench.refused("service_refused")).message
    await bench.refused("service_refused", tool_id="twin.get_node", effect=Effect.READ)


async def test_a_grant_holds_for_five_seconds_and_a_cancelled_run_stops_after_them(bench):
    for now in (0.0, 1.0, 4.9):
        bench.now = now
        await bench.admit()
    assert bench.table.asked == ["run-1"]
    bench.table.run = Run("run-1", "p1", "canceled", "flowv_1", True)
    bench.now = 5.0
    await bench.refused("service_refused")


async def test_a_refusal_is_never_kept(bench):
    bench.table.run = Run("run-1", "p1", "running", "flowv_1", False)
    await bench.refused("service_refused")
    bench.table.run = RUN
    assert (await bench.admit()).caller.trust == "service"
    bench.now, bench.table.fault = 6.0, "away"
    await bench.refused("service_refused")


# -- bound to a project -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_another_project_is_refused_in_the_header_and_in_the_arguments(bench, effect):
    await bench.refused("service_other_project", effect=effect, claims=ServiceClaims("run-1", project_id="p2"))
    await bench.refused("service_other_project", effect=effect, project_id="p2")
    await bench.refused("service_other_project", effect=effect, project_id=["p1"])
    assert (await bench.admit(effect=effect, project_id="p1")).project_id == "p1"


# -- narrow -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool_id", "effect", "hold"),
    [
        ("project.create", Effect.WRITE, HoldRule.BY_EFFECT), ("flow.propose", Effect.WRITE, HoldRule.BY_EFFECT),
        ("run.start_design_flow", Effect.WRITE, HoldRule.BY_EFFECT), ("twin.x", Effect.DESTROY, HoldRule.BY_EFFECT),
        ("twin.attempt_promotion", Effect.WRITE, HoldRule.ALWAYS),
        ("freecad.execute_code", Effect.DESTROY, HoldRule.BY_EFFECT),
    ],
)  # fmt: skip
async def test_what_a_run_may_not_do_is_refused_outright(bench, tool_id, effect, hold):
    await bench.refused("service_scope", tool_id=tool_id, effect=effect, hold=hold)


@pytest.mark.parametrize(
    ("tool_id", "effect", "hold"),
    [
        ("project.get", Effect.READ, HoldRule.BY_EFFECT), ("session.log_event", Effect.WRITE, HoldRule.NEVER),
        ("cadquery.create_parametric", Effect.PRODUCE, HoldRule.BY_EFFECT),
        ("projector.show", Effect.WRITE, HoldRule.BY_EFFECT),
    ],
)  # fmt: skip
async def test_everything_else_runs(bench, tool_id, effect, hold):
    assert (await bench.admit(tool_id, effect, hold)).caller.trust == "service"


# -- where runs are -----------------------------------------------------------------------------------------------


async def test_runs_are_found_in_the_store(tmp_path):
    store = TwinStore(Database("", tmp_path), open_blobs("", tmp_path / "blobs"))
    with store.change(author="anna") as change:
        project = change.create_project("P")
        change.put_run(Run("run-1", project.project_id, "running", "flowv_1", True, "concept", "G1"))
    found = await StoreRuns(lambda: store).find("run-1")
    assert (found.project_id, found.running, found.flow_approved) == (project.project_id, True, True)
    assert await StoreRuns(lambda: store).find("run-2") is None


async def test_a_store_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "metaforge.db").write_bytes(b"this is no database, and long enough to be told apart from one" * 40)
    store = TwinStore(Database("", tmp_path), open_blobs("", tmp_path / "blobs"))
    with pytest.raises(RunsUnavailable):
        await StoreRuns(lambda: store).find("run-1")


class Gateway:
    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {
            "/v1/runs/run-1": (200, {"run_id": "run-1", "project_id": "p1", "state": "running",
                                     "flow_version": "flowv_1", "phase": "concept"}),
            "/v1/design-flows/versions/flowv_1": (200, {"status": "approved", "valid": True}),
        }  # fmt: skip
        self.keys: list[str] = []
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gateway.keys.append(self.headers.get("authorization", ""))
                status, body = gateway.answers.get(self.path, (404, {}))
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    found = Gateway()
    yield found
    found.stop()


async def test_runs_are_found_at_a_gateway(gateway):
    found = await GatewayRuns(gateway.url, "key").find("run-1")
    assert found == Run("run-1", "p1", "running", "flowv_1", True, "concept", "")
    assert gateway.keys == ["Bearer key"] * 2


@pytest.mark.parametrize(
    "version", [(404, {}), (200, {"status": "proposed", "valid": True}), (200, {"status": "approved", "valid": False}),
                (200, {"status": "approved"})],
)  # fmt: skip
async def test_a_version_counts_only_when_it_is_approved_and_valid(gateway, version):
    gateway.answers["/v1/design-flows/versions/flowv_1"] = version
    assert not (await GatewayRuns(gateway.url).find("run-1")).flow_approved


async def test_a_gateway_that_knows_no_such_run_or_tells_of_another_finds_none(gateway):
    assert await GatewayRuns(gateway.url).find("../runs/run-1") is None
    gateway.answers["/v1/runs/run-1"] = (200, {"run_id": "run-2", "state": "running"})
    assert await GatewayRuns(gateway.url).find("run-1") is None


@pytest.mark.parametrize("answer", [(500, {}), (401, {}), (302, {}), (200, [])])
async def test_a_gateway_that_gives_no_answer_is_told(gateway, answer):
    gateway.answers["/v1/runs/run-1"] = answer
    with pytest.raises(RunsUnavailable):
        await GatewayRuns(gateway.url).find("run-1")


async def test_a_gateway_that_is_away_is_told(gateway):
    gateway.stop()
    with pytest.raises(RunsUnavailable, match="cannot be reached"):
        await GatewayRuns(gateway.url).find("run-1")
