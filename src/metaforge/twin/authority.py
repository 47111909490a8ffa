"""Decisions that are a person's alone."""

from metaforge.core.errors import ToolError


def require_approver(tool_id: str, approver: str) -> str:
    """Return who decides.

    Args:
        tool_id: what is decided by.
        approver: the person whom the approval gate identified, from the call's context, never from arguments.

    Raises:
        ToolError: `human_authority_required`: nobody identified approved this call.
    """
    if not approver:
        raise ToolError(
            f"{tool_id} is a person's decision, and no identified approver stands behind this call",
            kind="human_authority_required",
            fix="Ask a person to decide it themselves, where this server can tell who they are; an agent cannot",
            code="human_authority_required",
        )
    return approver
