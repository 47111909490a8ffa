"""The child of the bare forwarder: answers every JSON-RPC line with its own text, blocking, standard library only."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    words = message.get("params", {}).get("arguments", {}).get("text", "")
    result = {"content": [{"type": "text", "text": words}], "isError": False}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
