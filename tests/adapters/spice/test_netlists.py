"""Netlists as people and programs write them: files, includes, libraries, subcircuits, cards of their own."""

from typing import Any

import pytest

pytestmark = pytest.mark.program("ngspice")
DIVIDER = "divider\nV1 in 0 DC 10 AC 1\nR1 in out 1k\nR2 out 0 1k\n"


async def test_a_netlist_of_kicad_is_simulated_by_its_path(spice: Any) -> None:
    text = (
        ".title KiCad schematic\nR1 /in /out 1k\nC1 /out 0 159.155n\nV1 /in 0 DC 0 AC 1\n"
        "R2 Net-_R2-Pad1_ 0 10k\nR3 Net-_R2-Pad1_ /out 1MEG\n.ac dec 20 1 1Meg\n.end\n"
    )
    data = await spice.data("ac", netlist_path=spice.write("boards/filter.cir", text), probes=["/out"], at=[1000])
    assert data["title"] == "KiCad schematic"
    assert data["measurements"]["v(/out)"]["corner_hz"] == pytest.approx(1001, rel=0.005)
    assert data["waveforms"] == ["spice/filter-ac.raw"]
    assert data["deck_path"] == "spice/filter-ac.cir"


async def test_includes_are_looked_for_beside_the_file_that_names_them(spice: Any) -> None:
    spice.write("parts/loads/heavy.inc", "* a load\nR9 out 0 1k\n.end\n")
    spice.write("parts/all.inc", '.include "loads/heavy.inc"\n')
    text = DIVIDER + ".include 'parts/all.inc'\n.end\n"
    data = await spice.data("op", netlist_path=spice.write("top.cir", text))
    assert data["results"]["v(out)"]["final"] == pytest.approx(10 / 3)
    by_root = await spice.data("op", DIVIDER + ".include /workspace/parts/loads/heavy.inc\n.end\n")
    assert by_root["results"]["v(out)"]["final"] == pytest.approx(10 / 3)


async def test_a_missing_include_and_a_missing_section_are_named(spice: Any) -> None:
    fault = await spice.refused("op", DIVIDER + ".include no.inc\n.end\n")
    assert fault.data["kind"] == "missing_include"
    assert "line 5" in fault.data["where"]
    fault = await spice.refused("op", DIVIDER + f".include {'n' * 300}\n.end\n")
    assert fault.data["kind"] == "missing_include"
    # A section's name may be of any length, and names no file.
    await spice.refused("op", DIVIDER + f".lib {'n' * 300}\n.end\n")
    spice.write("m.lib", ".lib TT\nR9 out 0 1k\n.endl TT\n.lib FF\nR9 out 0 500\n.endl\n")
    fault = await spice.refused("op", DIVIDER + ".lib m.lib ss\n.end\n")
    assert fault.data["kind"] == "missing_section"
    assert "TT, FF" in fault.data["fix"]


async def test_only_the_section_that_is_named_counts(spice: Any) -> None:
    library = ".lib TT\nR9 out 0 1k\n.endl TT\n.lib FF\n.lib 'm.lib' extra\n.endl\n.lib extra\nR9 out 0 500\n.endl\n"
    spice.write("m.lib", library)
    for section, volts in (("tt", 10 / 3), ("FF", 2.5)):
        data = await spice.data("op", DIVIDER + f".lib 'm.lib' {section}\n.end\n", output_path=f"{section}.raw")
        assert data["results"]["v(out)"]["final"] == pytest.approx(volts)


async def test_subcircuits_unfold_with_their_parameters_and_inner_nodes(spice: Any) -> None:
    netlist = (
        "half\nV1 in 0 6\nX1 in out half r = 2k\nR9 out 0 1k\n"
        ".subckt half a b params: r=1k\nR1 a m {r}\nV5 m m2 0\nR3 m2 b {r}\nX9 m2 0 deep\n"
        ".subckt deep p q\nR1 p inner 1meg\nR2 inner q 1meg\n.ends\n.ends\n.end\n"
    )
    probes = ["x1.m", "i(x1.V5)", "i(X1.R1)", "v(x1.x9.inner)", "v(in,out)"]
    data = await spice.data("op", netlist, probes=probes)
    found = {name: result["final"] for name, result in data["results"].items()}
    assert found["i(x1.v5)"] == pytest.approx(found["i(x1.r1)"], rel=1e-9)
    assert found["v(x1.x9.inner)"] == pytest.approx(found["v(x1.m)"] / 2)
    assert found["v(in,out)"] == pytest.approx(6 - found["i(x1.r1)"] * 1000, rel=0.002)


async def test_global_nodes_reach_into_subcircuits(spice: Any) -> None:
    netlist = "global\n.global vcc\nV1 vcc 0 5\nX1 out load\nR1 out 0 1k\n.subckt load a\nR1 vcc a 1k\n.ends\n.end\n"
    answer = await spice.call("op", netlist)
    assert answer["data"]["results"]["v(out)"]["final"] == pytest.approx(2.5)
    assert "warnings" not in answer


async def test_comments_and_continuations_are_read_as_spice_reads_them(spice: Any) -> None:
    netlist = "comments\n* V9 in 0 99\nV1 in\n+ 0 ; between\n* in the middle\n+ 10\n\n"
    netlist += "R1 in out 1k $ kilo\nR2 out 0 1k // last\n"
    data = await spice.data("op", netlist)
    assert data["results"]["v(out)"]["final"] == pytest.approx(5)


async def test_the_netlists_own_card_is_run_where_no_parameters_are_given(spice: Any) -> None:
    netlist = DIVIDER + ".dc V1 0 1 0.5\n.tran 1u 1m\n.dc V1 0 100 50\n.end\n"
    answer = await spice.call("dc", netlist)
    assert answer["data"]["analysis"] == ".dc V1 0 1 0.5"
    assert answer["data"]["points_count"] == 3
    assert "Only the first of 2 .dc cards was run" in answer["warnings"][0]
    replaced = await spice.call("dc", netlist, params={"source": "V1", "start": 0, "stop": "2", "step": 1})
    assert "params replace the netlist's own" in replaced["warnings"][0]
    assert replaced["data"]["results"]["v(out)"]["final"] == 1.0


@pytest.mark.parametrize(
    ("analysis", "params", "words"),
    [
        ("ac", None, "has no .ac card"),
        ("ac", {"stop": 1}, "stop is not a parameter of ac; fstart is needed; fstop is needed"),
        ("ac", {"fstart": 0, "fstop": 10}, "params.fstart: 0 Hz"),
        ("ac", {"fstart": 10, "fstop": 1}, "params.fstop: 1 Hz lies below fstart"),
        ("ac", {"fstart": 1, "fstop": "1M"}, "M is milli to SPICE; write 1meg"),
        ("dc", {"source": "V9", "start": 0, "stop": 1, "step": 0.1}, "sweep one of V1, a resistor, or temp"),
        ("dc", {"source": "V1", "start": 5, "stop": 0, "step": 0.5}, "never leads from 5 to 0; give -0.5"),
        ("dc", {"source": "V1", "start": 0, "stop": 1}, "step is needed"),
        ("transient", {"stop": "quick"}, "'quick' is no number"),
        ("transient", {"stop": 1, "start": 2}, "does not lie after start"),
        ("transient", {"step": 1e-6}, "stop is needed"),
        ("noise", {"fstart": 1}, "takes its numbers from the netlist's own .noise card"),
        ("op", {"stop": 1}, "op takes none"),
    ],
)
async def test_wrong_parameters_are_told_with_what_is_right(
    spice: Any, analysis: str, params: dict[str, Any] | None, words: str
) -> None:
    fault = await spice.refused(analysis, DIVIDER + ".end\n", params=params)
    assert words in fault.message


async def test_quantities_may_be_written_as_engineers_write_them(spice: Any) -> None:
    netlist = DIVIDER + "C1 out 0 1n\n.end\n"
    data = await spice.data("transient", netlist, params={"stop": "10 us", "step": "20ns"}, at=["5u"])
    assert data["values_at"][0]["at"] == 5e-6
    data = await spice.data("ac", netlist, params={"fstart": "1k", "fstop": "1megHz"}, output_path="b.raw")
    assert data["analysis"] == ".ac dec 20 1000.0 1000000.0"


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ("v(ouy)", "did you mean out"),
        ("i(r9)", "there are"),
        ("v(out)*2", "is an expression"),
        ("0", "is ground"),
        ("@r9[i]", "is no element"),
    ],
)
async def test_an_unknown_probe_is_told_with_the_nearest_names(spice: Any, probe: str, words: str) -> None:
    fault = await spice.refused("op", DIVIDER + ".end\n", probes=[probe])
    assert words in fault.message


async def test_the_current_of_a_resistor_in_an_ac_analysis_has_its_way_told(spice: Any) -> None:
    fault = await spice.refused("ac", DIVIDER + ".end\n", params={"fstart": 1, "fstop": 10}, probes=["i(R1)"])
    assert "put a 0 V source in series" in fault.message


async def test_what_the_netlist_prints_is_what_is_told(spice: Any) -> None:
    netlist = (
        DIVIDER + ".print dc v(out), v( in , out ) i(v1)\n.print ac vdb(out)\n.dc V1 0 1 0.5\n.ac dec 5 1 10\n.end\n"
    )
    data = await spice.data("dc", netlist)
    assert list(data["results"]) == ["v(out)", "v(in,out)", "i(v1)"]
    assert list((await spice.data("ac", netlist))["results"]) == ["v(out)"]
    both = await spice.data("op", netlist, output_path="all.raw")
    assert set(both["results"]) == {"v(in)", "v(out)", "i(v1)"}


@pytest.mark.parametrize("request_", ["{v(out)+1}", "v(nowhere)", "par('v(out)*2')", "i(R77)"])
async def test_an_output_that_ngspice_would_silently_not_print_is_refused(spice: Any, request_: str) -> None:
    fault = await spice.refused("dc", DIVIDER + f".dc V1 0 1 0.5\n.print dc {request_}\n.end\n")
    assert fault.data["kind"] == "bad_output_request"
    ran = await spice.data("dc", DIVIDER + f".dc V1 0 1 0.5\n.print dc {request_}\n.end\n", probes=["out"])
    assert ran["results"]["v(out)"]["final"] == 0.5


async def test_cards_that_are_not_run_are_told(spice: Any) -> None:
    answer = await spice.call("op", DIVIDER + ".meas op x param='1'\n.four 1k v(out)\n.end\nR7 out 0 1\n")
    told = " | ".join(answer["warnings"])
    assert "1 .meas cards were not evaluated" in told
    assert ".four is not run here" in told
    assert "below .end is not simulated" in told
    assert answer["data"]["results"]["v(out)"]["final"] == pytest.approx(5)


async def test_the_letters_of_other_programs_are_read_as_meant(spice: Any) -> None:
    text = "µ of another age\nV1 a 0 1\nR1 a b 1k\nR2 b 0 10\xb5\nR3 b 0 1\xa0\n.backanno\n.end\n"
    for name, content in (("old.cir", text.encode("latin-1", "replace")), ("new.cir", text.encode())):
        (spice.workspace / name).write_bytes(content)
        data = await spice.data("op", netlist_path=name, output_path=f"{name}.raw")
        assert data["results"]["v(b)"]["final"] == pytest.approx(1e-5 / (1 + 1e-5) / 1000, rel=0.001)


async def test_a_node_name_that_spice_would_split_is_refused(spice: Any) -> None:
    fault = await spice.refused("op", "old KiCad\nV1 a 0 1\nR1 a Net-(R1-Pad1) 1k\nR2 Net-(R1-Pad1) 0 1k\n.end\n")
    assert fault.data["kind"] == "bad_node_name"
    assert "Net-_R1-Pad1_" in fault.data["fix"]


@pytest.mark.parametrize(
    ("source", "start", "stop", "step", "at", "volts", "words"),
    [
        ("temp", -40, 120, 40, 40, 0.5 / (0.5 + 1 + 13e-3), "at 40 C"),
        ("R1", "1k", "5k", "1k", 2000, 1 / 5, "at 2 kohm"),
        ("V1", 0, 10, 1, 3, 1.0, "at 3 V"),
    ],
)
async def test_temperature_and_resistors_can_be_swept_too(
    spice: Any, source: str, start: Any, stop: Any, step: Any, at: float, volts: float, words: str
) -> None:
    netlist = "sweeps\nV1 a 0 1\nR1 a b 1k tc=0.001\nR2 b 0 500\n.end\n"
    params = {"source": source, "start": start, "stop": stop, "step": step}
    answer = await spice.call("dc", netlist, params=params, at=[at], probes=["b"])
    assert answer["data"]["values_at"][0]["value"] == pytest.approx(volts, rel=0.001)
    assert words in answer["summary"]


async def test_a_choice_within_the_netlist_is_left_to_ngspice(spice: Any) -> None:
    netlist = "choice\n.param heavy=1\nV1 a 0 1\n.if (heavy > 0.5)\nR1 a 0 1k\n.else\nR1 a 0 2k\n.endif\n.end\n"
    data = await spice.data("op", netlist)
    assert data["results"]["i(v1)"]["final"] == pytest.approx(-1e-3)


async def test_a_nested_sweep_is_kept_whole_and_not_read_at_points(spice: Any) -> None:
    netlist = "nested\nV1 a 0 1\nV2 b 0 0\nR1 a out 1k\nR2 out b 1k\n.dc V1 0 1 0.5 V2 0 1 1\n.end\n"
    answer = await spice.call("dc", netlist, probes=["out"], at=[0.5])
    assert answer["data"]["points_count"] == 6
    assert "values_at" not in answer["data"]
    assert any("more than once" in warning for warning in answer["warnings"])
    assert answer["data"]["waveform_data"]["v(out)"] == pytest.approx([0, 0.25, 0.5, 0.5, 0.75, 1])


@pytest.mark.parametrize("netlist", ["", " \n\n", "only a title", "title\n.end\n", "title\n+ 1k\n"])
async def test_a_netlist_with_nothing_in_it_is_refused(spice: Any, netlist: str) -> None:
    fault = await spice.refused("op", netlist)
    assert fault.data["fix"]


async def test_one_netlist_is_wanted(spice: Any) -> None:
    assert "one of them" in (await spice.refused("op")).message
    assert "one of them" in (await spice.refused("op", DIVIDER, netlist_path="a.cir")).message
