"""Pipes of files."""

import fnmatch
import os

from clnn.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe, sized


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The names of the files in folders, those that match ``masks`` only."""

    def __init__(self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1):
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks, self.recursive, self.abspath, self.non_deterministic, self.length = masks, recursive, abspath, non_deterministic, length

    def _matches(self, name):
        masks = [self.masks] if isinstance(self.masks, str) else self.masks
        return not any(masks) or any(fnmatch.fnmatch(name, mask) for mask in masks)

    def __iter__(self):
        for root in self.datapipe:
            for folder, folders, names in os.walk(root):
                if not self.non_deterministic:
                    folders.sort()
                    names.sort()
                for name in filter(self._matches, names):
                    path = os.path.join(folder, name)
                    yield os.path.abspath(path) if self.abspath else path
                if not self.recursive:
                    break

    def __len__(self):
        return sized(self, self.length)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Pairs of a file's name and the open file."""

    def __init__(self, datapipe, mode="r", encoding=None, length=-1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode if "r" in mode else "r" + mode, encoding, length

    def __iter__(self):
        return ((name, open(name, self.mode, encoding=self.encoding)) for name in self.datapipe)

    def __len__(self):
        return sized(self, self.length)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs of a file's name and its content, in parts of ``chunk`` bytes or as a whole."""

    def __init__(self, datapipe, chunk=None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for name, stream in self.datapipe:
            while part := stream.read(self.chunk):
                yield name, part
            stream.close()
