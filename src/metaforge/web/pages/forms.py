"""Read a form as browsers send it: one text a field, of bounded size."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from metaforge.core.errors import InvalidArguments

MAX_BYTES = 4 << 20
MAX_FIELDS = 20


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        InvalidArguments: it is too large, of another kind, or no UTF-8.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise InvalidArguments("A form must be sent as application/x-www-form-urlencoded")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise InvalidArguments(f"The form is larger than {MAX_BYTES >> 20} MB")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as fault:
        raise InvalidArguments(f"The form cannot be read: {fault}") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}
