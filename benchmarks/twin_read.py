"""`twin.get_node` through the whole server, against a cheap call through the same server."""

from statistics import median

from benchmarks.cheap_http import cpu_per_call_us
from benchmarks.figure import Effort, Figure, percentile, ratio, spread
from benchmarks.load import Target
from benchmarks.pipes import House, house

LIMIT_RATIO = 2.5


def measure(effort: Effort) -> list[Figure]:
    """Alternate between reading a node with links and an echo, at 1 and at 32 clients."""
    figures: list[Figure] = []
    with house() as place:
        project_id, key = _design(place)
        with place.http() as (server, port):
            node = Target(port, "twin.get_node", arguments={"item_key": key, "project_id": project_id})
            cheap = Target(port, "fixture.echo")
            for clients_count in (1, 32):
                cpu_per_call_us(server.pid, node, clients_count, 1.0)
                cpu_per_call_us(server.pid, cheap, clients_count, 1.0)
                node_us, cheap_us, latencies = [], [], []
                for _ in range(effort.rounds_count):
                    us, ms = cpu_per_call_us(server.pid, node, clients_count, effort.phase_seconds)
                    node_us.append(us)
                    latencies += ms
                    cheap_us.append(cpu_per_call_us(server.pid, cheap, clients_count, effort.phase_seconds)[0])
                detail = {
                    "node_us": spread(node_us),
                    "cheap_us": spread(cheap_us),
                    "p50_ms": round(median(latencies), 3),
                    "p99_ms": round(percentile(latencies, 0.99), 3),
                }
                many = f"{clients_count} client{'s' * (clients_count > 1)}"
                what = f"twin.get_node against a cheap call, CPU per call, {many}"
                figures.append(Figure("twin_read", what, ratio(node_us, cheap_us), "x", LIMIT_RATIO, detail))
    return figures


def _design(place: House) -> tuple[str, str]:
    """Record a need with an objective that comes from it, and return the project and the need's key."""
    with place.stdio() as client:
        client.shake_hands()
        project = client.call("project.create", name="Measured")["structuredContent"]["id"]
        about = {"statement": "It must be light", "title": "Light"}
        need = client.call("twin.record_engineering_entity", entity_type="stakeholder_need", **about)
        key: str = need["structuredContent"]["item_key"]
        for number in range(3):
            client.call(
                "twin.record_engineering_entity",
                entity_type="objective", statement=f"objective {number}", title=f"O{number}", parent_refs=[key],
            )  # fmt: skip
        return project, key
