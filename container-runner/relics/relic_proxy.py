"""The proxy of a relic: reads calls as lines of JSON on standard input and speaks HTTP to the service.

Runs in the service's network namespace only, so the service needs no published port and is unreachable for
others. One input line is one call, and one output line is its answer, in any order.
"""

import concurrent.futures
import http.client
import json
import os
import sys
import threading
import time

HOST = "127.0.0.1"
PORT, LIMIT, WORKERS = (int(word) for word in sys.argv[1:4])
# the directory of the service's state and its limits; empty for a service without state
STATE, STATE_BYTES, STATE_FILES = (sys.argv[4:5] or [""])[0], *(int(word) for word in (sys.argv[5:7] or [0, 0]))

answering = threading.Lock()


def answer(number, **fields):
    line = json.dumps({"id": number, **fields})
    with answering:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def connect(deadline):
    """Returns a connection, or None if there is none: then nothing was sent, and the call may be repeated."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=max(0.1, deadline - time.monotonic()))
    try:
        connection.connect()
    except OSError:
        return None
    return connection


def read(response, connection, deadline):
    """Returns the body, or None if it is too large. The timeout covers the whole body, not each chunk."""
    pieces, size = [], 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        piece = response.read1(65536)
        if not piece:
            return b"".join(pieces)
        size += len(piece)
        if size > LIMIT:
            return None
        pieces.append(piece)


def call(order):
    number, deadline = order["id"], time.monotonic() + order["timeout"]
    connection = connect(deadline)
    if connection is None:
        return answer(number, end="refused")
    try:
        body = order["body"]
        headers = {"accept": "application/json", "connection": "close"}
        if body is not None:
            headers["content-type"] = "application/json"
        if "traceparent" in order:
            headers["traceparent"] = order["traceparent"]
        connection.request(order["method"], order["path"], None if body is None else body.encode(), headers)
        response = connection.getresponse()
        content = read(response, connection, deadline)
        if content is None:
            return answer(number, end="too_large")
        text = content.decode("utf-8", "replace")
        answer(number, end="answered", status=response.status, type=response.getheader("content-type", ""), body=text)
    except TimeoutError:
        answer(number, end="timeout")
    except (OSError, http.client.HTTPException) as fault:
        answer(number, end="broken", why=f"{type(fault).__name__}: {fault}"[:200])
    finally:
        connection.close()


def measure():
    """Measures bytes and entries below STATE. Stops at the limit, so its duration is bounded."""
    size, files, open_ = 0, 0, [STATE]
    while open_:
        with os.scandir(open_.pop()) as entries:
            for entry in entries:
                files += 1
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if size > STATE_BYTES:
                    return f"it holds more than {STATE_BYTES >> 20} MiB"
                if files > STATE_FILES:
                    return f"it holds more than {STATE_FILES} files"
                if entry.is_dir(follow_symlinks=False):
                    open_.append(entry.path)
    return None


def look(spare):
    disk = os.statvfs(STATE)
    try:
        why = measure()
    except FileNotFoundError:
        # an entry was deleted during the measurement
        why = None
    except OSError as fault:
        # the size of an unreadable directory is unknown
        why = f"a directory in it cannot be read ({fault.strerror})"
    if disk.f_bavail * disk.f_frsize < spare:
        why = f"less than {spare >> 20} MiB are free on the disk of this machine"
    answer(0, end="state", why=why)


def keep_looking(spare):
    while True:
        started = time.monotonic()
        look(spare)
        # measure for at most a fifth of the time
        time.sleep(max(1, 4 * (time.monotonic() - started)))


def main():
    if STATE:
        spare = int(sys.argv[7])
        # before the first call: a state beyond its limits must not be served
        look(spare)
        threading.Thread(target=keep_looking, args=(spare,), daemon=True).start()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
        for line in sys.stdin:
            workers.submit(call, json.loads(line))


main()
