"""Media: pictures, sound and files that a tool returns, as content blocks of MCP.

Made from bytes or from a path; a file is read when the result is made, up to a limit.
"""

import os

BYTES_MAX = 64 * 1024 * 1024
KINDS = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "svg": "image/svg+xml", "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg", "m4a": "audio/mp4",
    "flac": "audio/flac", "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html",
    "json": "application/json", "pdf": "application/pdf", "xml": "application/xml",
}


class _Media:
    main, default = "", "application/octet-stream"

    def __init__(self, path=None, data=None, format=None, name=None, annotations=None):
        if (path is None) == (data is None):
            raise ValueError("give either `path` or `data`")
        self.path = None if path is None else os.fspath(path)
        self.data, self.format, self.name, self.annotations = data, format, name, annotations

    def _bytes(self):
        if self.data is not None:
            return self.data.encode("utf-8") if isinstance(self.data, str) else bytes(self.data)
        with open(self.path, "rb") as file:
            data = file.read(BYTES_MAX + 1)
        if len(data) > BYTES_MAX:
            raise ValueError("`%s` is over %d bytes" % (os.path.basename(self.path), BYTES_MAX))
        return data

    def _mime(self):
        if self.format:
            kind = self.format.lower()
            return kind if "/" in kind else KINDS.get(kind, (self.main or "application") + "/" + kind)
        extension = (self.path or self.name or "").rpartition(".")[2].lower()
        return KINDS.get(extension, self.default)

    def _encoded(self):
        import base64

        return base64.b64encode(self._bytes()).decode("ascii")

    def _noted(self, block):
        if self.annotations is not None:
            from .plain import plain

            block["annotations"] = plain(self.annotations)
        return block


class Image(_Media):
    """A picture."""

    main, default = "image", "image/png"

    def to_block(self):
        return self._noted({"type": "image", "data": self._encoded(), "mimeType": self._mime()})


class Audio(_Media):
    """Sound."""

    main, default = "audio", "audio/wav"

    def to_block(self):
        return self._noted({"type": "audio", "data": self._encoded(), "mimeType": self._mime()})


class File(_Media):
    """Any file; text comes as text, the rest as base64."""

    def to_block(self):
        mime = self._mime()
        name = self.name or (os.path.basename(self.path) if self.path else "file")
        resource = {"uri": resource_uri(name), "mimeType": mime}
        data = self._bytes()
        if mime.startswith("text/") or mime in ("application/json", "application/xml"):
            try:
                resource["text"] = data.decode("utf-8")
                return self._noted({"type": "resource", "resource": resource})
            except UnicodeDecodeError:
                pass
        resource["blob"] = self._encoded()
        return self._noted({"type": "resource", "resource": resource})


def resource_uri(name):
    from urllib.parse import quote

    return "file:///" + quote(name)
