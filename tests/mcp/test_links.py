"""Where people find a call, in the results of both outcomes."""


async def test_results_link_to_the_dashboard_where_there_is_one(pipes) -> None:
    await pipes.initialize()
    assert "links" not in (await pipes.call("echo", {"text": "x"}))["result"]["_meta"]

    pipes.service.has_dashboard = True
    for tool, arguments in (("echo", {"text": "x"}), ("refuse", {})):
        meta = (await pipes.call(tool, arguments))["result"]["_meta"]
        assert meta["links"] == [{"url": f"http://dashboard/calls/{meta['callId']}", "label": "This call"}]
