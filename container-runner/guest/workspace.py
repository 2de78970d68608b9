"""Writes the files that a program gets, and an archive of what it leaves, in a process of the guest.

Part of the preloaded Python, between `harness.py` and `waiting.py`.
"""

PIECE = 262_144
# Longer paths cannot be read by their name; no such name is kept.
PATH_BYTES = 3_800


def receive_files(root, files, source):
    """Writes the files below `root`. Their bytes follow each other in `source`."""
    import os

    os.chmod(root, 0o755)
    folders = {root}
    for path, size, executable, modified in files:
        place = f"{root}/{path}"
        folder = os.path.dirname(place)
        if folder not in folders:
            os.makedirs(folder, exist_ok=True)
            folders.add(folder)
        file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755 if executable else 0o644)
        while size > 0:
            piece = source.read(min(size, PIECE))
            if not piece:
                # the runner could not read it; it ends this sandbox
                os._exit(126)
            size -= len(piece)
            write_to(file, piece)
        os.utime(file, (modified, modified))
        os.close(file)


def write_to(file, data):
    import os

    data = memoryview(data)
    while data:
        data = data[os.write(file, data) :]


def leave_files(root, out):
    """Writes an archive of `root` to the descriptor `out`; every name of a file is a file. No other process runs."""
    import os
    import stat
    import tarfile

    root = os.fsencode(root)
    os.chmod(root, 0o755)
    buffer = bytearray()
    folders = [b""]

    def flush():
        write_to(out, buffer)
        buffer.clear()

    while folders:
        folder = folders.pop()
        for name in os.listdir(root + folder):
            path = folder + b"/" + name
            place = root + path
            known = os.lstat(place)
            entry = tarfile.TarInfo(os.fsdecode(path[1:]))
            entry.mode = stat.S_IMODE(known.st_mode)
            entry.type = b"?"
            if stat.S_ISDIR(known.st_mode):
                if len(path) <= PATH_BYTES:
                    entry.type = tarfile.DIRTYPE
                    folders.append(path)
                    if entry.mode & 0o700 != 0o700:
                        os.chmod(place, 0o700)
            elif stat.S_ISREG(known.st_mode):
                entry.type = tarfile.REGTYPE
                entry.size = known.st_size
            elif stat.S_ISLNK(known.st_mode):
                entry.type = tarfile.SYMTYPE
            elif stat.S_ISFIFO(known.st_mode):
                entry.type = tarfile.FIFOTYPE
            buffer += entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
            if entry.type == tarfile.REGTYPE and entry.size > 0:
                if entry.mode & 0o400 == 0:
                    os.chmod(place, 0o600)
                file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                missing = entry.size
                while missing > 0:
                    piece = os.read(file, min(missing, PIECE))
                    if not piece:
                        raise OSError(f"{place} became shorter")
                    missing -= len(piece)
                    buffer += piece
                    if len(buffer) >= PIECE:
                        flush()
                os.close(file)
                buffer += bytes(-entry.size % tarfile.BLOCKSIZE)
            if len(buffer) >= PIECE:
                flush()
    buffer += bytes(2 * tarfile.BLOCKSIZE) + b"complete"
    flush()


def end_all():
    """Kills all other processes of this sandbox, and waits until they are gone."""
    import os
    import signal
    import time

    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            # another process is init, and reaps them
            time.sleep(0.001)
