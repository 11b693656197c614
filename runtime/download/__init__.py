"""Downloads that survive: cut connections, restarts, full disks, and servers that lie.

    file = RemoteFile("model.safetensors", 1_234, sha256="…")
    transport = HttpTransport.of(url, headers={"Authorization": "…"})
    download(file, folder / file.name, transport, on_bytes)
    download_all(files, folder, transport, ctx)
    document = read_document(Address(url, headers), "Reading the index", ctx.check)

A file on its way is `NAME.partial`, with the version its bytes are of in `NAME.partial.etag`; the next start
asks for what is missing, if the server still has that version. A whole file is checked by size and hash, made
durable and renamed. Headers go to the origin of their address alone, whatever it redirects to.

Calls block, and hear every 0.1 s of `on_bytes`, `tick` or the job's cancellation, also while they connect or
wait. They raise UnreachableError where trying again may help, StatusError for an answer with another status,
and DecdecError for everything else; what is there stays for the next start.
"""

from runtime.download.documents import Document, read_document
from runtime.download.errors import BusyError, ChangedError, StalledError, StatusError, UnreachableError
from runtime.download.files import RemoteFile, check_distinct, is_there, missing_bytes
from runtime.download.http import Address, HttpTransport, new_client
from runtime.download.limits import Limits
from runtime.download.several import download, download_all
from runtime.download.transport import Transport

__all__ = [
    "Address",
    "BusyError",
    "ChangedError",
    "Document",
    "HttpTransport",
    "Limits",
    "RemoteFile",
    "StalledError",
    "StatusError",
    "Transport",
    "UnreachableError",
    "check_distinct",
    "download",
    "download_all",
    "is_there",
    "missing_bytes",
    "new_client",
    "read_document",
]
