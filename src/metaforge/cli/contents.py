"""`metaforge blobs`: what is kept by digest, and whether the object store has all of it."""

from collections.abc import Collection, Sequence

from metaforge.cli.screen import command_name, console, print_json, progress
from metaforge.core.counts import counted
from metaforge.core.errors import MetaForgeError
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.store.mirrored import MirroredBlobs
from metaforge.store.objects import ObjectStore

_SHOWN_COUNT = 20
_EACH_SECONDS = 1.0


def show(*, send: bool, as_json: bool) -> int:
    """Tell what is kept and what the object store lacks, and send that on request.

    Returns:
        The exit status: 1 while the store lacks something or does not answer.
    """
    settings = Settings.from_environment()
    folder = BlobStore(settings.home_path / "blobs")
    kept = {sha256: folder.path_of(sha256).stat().st_size for sha256 in folder.digests()}
    told: dict[str, object] = {"folder": str(folder.root), "count": len(kept), "size_bytes": sum(kept.values())}
    if not settings.blob_url:
        if as_json:
            print_json(told | {"store": None})
        else:
            console().print(f"{_words(kept.values())} below {folder.root}")
            console().print("METAFORGE_BLOB_URL names no object store: the folder is all there is.")
        return 0
    objects = ObjectStore(settings.blob_url)
    blobs = MirroredBlobs(folder, objects)
    try:
        missing = blobs.missing()
    except MetaForgeError as fault:
        console(stderr=True).print(fault.message, style="red")
        return 1
    left = _send(blobs, missing) if send else dict.fromkeys(missing, "it was never sent")
    if not left:
        blobs.note_complete()
    if as_json:
        rows = [{"sha256": sha256, "size_bytes": kept[sha256], "reason": why} for sha256, why in left.items()]
        sent_count = len(missing) - len(left) if send else 0
        print_json(told | {"store": objects.name, "sent_count": sent_count, "missing": rows})
        return 1 if left else 0
    out = console()
    out.print(f"{_words(kept.values())} below {folder.root}")
    if send and len(missing) > len(left):
        out.print(f"{counted(len(missing) - len(left), 'file')} sent to {objects.name}")
    if not left:
        out.print(f"{objects.name} has all of them.", style="green")
        return 0
    _show_left(left, kept, objects.name)
    if not send:
        out.print(f"To send them: {command_name()} blobs --send")
    return 1


def _send(blobs: MirroredBlobs, missing: Sequence[str]) -> dict[str, str]:
    left: dict[str, str] = {}
    with progress() as bar:
        task = bar.add_task("sending", total=len(missing), doing="")
        for sha256 in missing:
            left |= blobs.settle([sha256], seconds=_EACH_SECONDS)
            bar.update(task, advance=1, doing=sha256[:12])
    return left


def _show_left(left: dict[str, str], kept: dict[str, int], store: str) -> None:
    out = console()
    total = _words([kept[sha256] for sha256 in left])
    out.print(f"{store} lacks {total}:", style="yellow")
    for sha256, why in list(left.items())[:_SHOWN_COUNT]:
        out.print(f"  {sha256}  {kept[sha256]:>12,} bytes  {why}")
    if len(left) > _SHOWN_COUNT:
        out.print(f"  and {len(left) - _SHOWN_COUNT:,} more (--json lists all)")


def _words(sizes: Collection[int]) -> str:
    return f"{counted(len(sizes), 'file')}, {sum(sizes) / 1e6:.1f} MB"
