"""A caller's script can write on the worker's own stdout: whatever it says, the call ends in words."""

import pytest

from metaforge.core.errors import MetaForgeError, ToolError

FORGED = [
    "'text'", "[]", "{'data': 'text'}", "{'data': {'text': 'a'}, 'files': 5}", "{'data': {'text': 'a'}, 'files': [5]}",
    "{'data': {'text': 'a'}, 'files': {'a': 1}}", "{'data': {'text': 'a'}, 'pictures': [None]}",
    "{'data': {'text': 'a'}, 'warnings': 7}", "{'data': {'text': 'a'}, 'warnings': [1]}",
    "{'data': {'text': 'a'}, 'programs': ['a']}", "{'data': {'text': 'a'}, 'summary': {'a': 1}}",
    "{'data': {'text': 'a'}, 'output_files': [{}]}",
]  # fmt: skip


def sending(words: str) -> str:
    return f"import json\nsend(json.dumps({{'jsonrpc': '2.0', 'id': request['id'], {words}}}).encode() + b'\\n')"


@pytest.mark.parametrize("forged", FORGED)
async def test_an_answer_of_another_shape_is_refused_by_its_field(script_house, forged):
    house = script_house(sending(f"'result': {forged}"))
    try:
        with pytest.raises(ToolError) as refusal:
            await house.call("echo", text="a")
        assert refusal.value.kind == "bad_answer"
    finally:
        await house.source.close()


@pytest.mark.parametrize("data", ["{'count': 'many'}", "{'text': 5, 'pid': 1, 'count': 1}"])
async def test_the_figures_of_a_callers_own_code_are_held_to_the_output_schema(script_house, data):
    house = script_house(sending(f"'result': {{'data': {data}}}"))
    try:
        with pytest.raises(ToolError) as refusal:
            await house.call("script", code="")
        assert refusal.value.kind == "bad_answer"
    finally:
        await house.source.close()


async def test_a_callers_own_code_says_nothing_in_the_servers_name(script_house):
    data = "{'text': 'a', 'pid': 1, 'count': 1, 'approval': {'approved': True}, 'call_id': 'x', 'warnings': 'none'}"
    house = script_house(sending(f"'result': {{'data': {data}}}"))
    try:
        outcome = await house.call("script", code="")
        assert outcome.data == {"text": "a", "pid": 1, "count": 1}
    finally:
        await house.source.close()


@pytest.mark.parametrize(
    "forged",
    ["'oops'", "[1]", "{'code': -32602, 'message': 'no', 'data': {'message': 'twice', 'self': 1}}",
     "{'code': -32001, 'message': ['no'], 'data': {'message': 'twice', 'self': 1}}",
     "{'code': {'a': 1}, 'message': 'no', 'data': [1]}", "{'code': -32001, 'message': 'no' * 4000000}"],
)  # fmt: skip
async def test_an_error_of_another_shape_is_told_and_kept_short(script_house, forged):
    house = script_house(sending(f"'error': {forged}"))
    try:
        with pytest.raises(MetaForgeError) as refusal:
            await house.call("echo", text="a")
        assert 0 < len(refusal.value.message) < 10_000
    finally:
        await house.source.close()


async def test_a_flood_of_progress_is_thinned_and_its_words_cut(script_house):
    house = script_house(
        "import json\n"
        "for odd in ([1], {'request_id': [1]}, {'request_id': True, 'progress': 0.5}):\n"
        "    send(json.dumps({'jsonrpc': '2.0', 'method': 'tool/result', 'params': odd}).encode() + b'\\n')\n"
        "told = {'request_id': request['id'], 'progress': 0.5, 'message': 'x' * 5000}\n"
        "line = json.dumps({'jsonrpc': '2.0', 'method': 'tool/result', 'params': told}).encode() + b'\\n'\n"
        "for _ in range(2000):\n"
        "    send(line)\n"
        "send(answer(request, {'text': 'fine'}) + b'\\n')"
    )
    try:
        assert (await house.call("echo", text="a")).data["text"] == "fine"
        assert 0 < len(house.told) < 500
        assert max(len(text) for _, text in house.told) <= 500
    finally:
        await house.source.close()
