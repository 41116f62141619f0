"""What ``importlib.metadata`` tells about an installed torch when clnn is in its place: libraries ask for the version."""
from importlib.metadata import Distribution


class Torch(Distribution):
    """A package of which there is a name and a version."""

    def __init__(self, version):
        self._version = version

    def read_text(self, filename):
        """The file with name and version; there is no other."""
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {self._version}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        """Where a file would be."""
        return path
