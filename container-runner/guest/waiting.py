"""A preloaded Python that waits for its one job on standard input: a line with the length of a JSON document, the
document, and the bytes of the files of the workspace.

Appended to `harness.py`, whose `run` it calls, and to `workspace.py`, and started with `python3 -c`, so that any image
with a python3 will do. As the first process of a container it forks the program and is init to it: it passes TERM on,
reaps what is orphaned, and ends everything at the job's deadline in case the runner is gone. With a workspace, it forks
the program in every sandbox, so that files are kept after any end of the program.
"""


def wait():
    import json
    import os

    length = sys.stdin.buffer.readline()
    if not length:
        # the runner does not need it any more
        os._exit(0)
    job = json.loads(sys.stdin.buffer.read(int(length)))
    if job["workspace"] is not None:
        # before the fork: what a program leaves counts only if it began with all of its files
        try:
            receive_files(job["folder"], job["workspace"], sys.stdin.buffer)
        except OSError as fault:
            os.write(2, f"the files of the workspace do not fit into the sandbox: {fault.strerror}\n".encode())
            os._exit(126)
    if os.getpid() == 1 or job["workspace"] is not None:
        child = os.fork()
        if child:
            supervise(child, job)
    become(job)
    sys.exit(run(job["entry"], job["program"], job["inputs"], job["args"]))


def become(job):
    """Prepares the environment and the standard input of the job's program."""
    import os
    import random

    if job["channel"] is not None:
        os.close(job["channel"])
    if job["workspace"] is None:
        os.chmod(job["folder"], 0o555)
    else:
        # signals to its process group must not reach its parent
        os.setsid()
    for place, content in job["files"].items():
        with open(place, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(content)
        os.chmod(place, 0o444)
    stdin = os.open(job["stdin"], os.O_RDONLY)
    os.dup2(stdin, 0)
    os.close(stdin)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape")
    os.chmod(os.path.dirname(job["program"]), 0o555)
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["directory"])
    random.seed()


def supervise(child, job):
    """Waits for the program, saves what it left in the workspace, and ends with the program's exit code."""
    import os
    import signal

    def pass_on(*_):
        # without being init, this process is one of those that the runner signals
        if os.getpid() == 1:
            try:
                os.kill(-1, signal.SIGTERM)
            except OSError:
                pass

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(137))
    signal.alarm(job["deadline"])
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            if job["workspace"] is not None:
                try:
                    save(job)
                except Exception:
                    # the archive is incomplete, which the runner notices
                    pass
            os._exit(code if code >= 0 else 128 - code)


def save(job):
    end_all()
    out = 1 if job["channel"] is None else job["channel"]
    write_to(out, job["marker"].encode())
    leave_files(job["folder"], out)


import asyncio, collections, csv, datetime, io, itertools, json, linecache, math, os, random, re, signal, statistics, stat, tarfile, time, traceback, types

wait()
