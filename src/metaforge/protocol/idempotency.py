"""Where a call carries the key of its caller's that makes it one write, however often it is sent."""

META_KEY = "metaforge/idempotencyKey"
"""In `params._meta`, for programs."""
ARGUMENT = "idempotency_key"
"""Among the arguments of any tool that writes, for models: it is no argument of the tool's own."""
