"""Every JSON-RPC error code MetaForge answers with. No other module states a number."""

from enum import IntEnum


class Code(IntEnum):
    """JSON-RPC 2.0 codes, MCP's own, and the application's."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    TOOL_EXECUTION_ERROR = -32001
    RESOURCE_NOT_FOUND = -32002
    TOOL_UNAVAILABLE = -32003
    RESOURCE_READ_ERROR = -32005
    TOOL_TIMEOUT = -32006
    AUTH_DENIED = -32007
    HEADER_MISMATCH = -32020
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022
