"""A preloaded Python that waits for its one job: JSON on standard input, up to its end.

Appended to `harness.py`, whose `run` it calls, and started with `python3 -c`, so that any image with a
python3 will do. As the first process of a container it forks the program and is init to it: it passes
TERM on, reaps what is orphaned, and ends everything at the job's deadline in case the runner is gone.
"""


def wait():
    import json
    import os

    text = sys.stdin.buffer.read()
    if not text:
        # the runner does not need it any more
        os._exit(0)
    job = json.loads(text)
    del text
    if os.getpid() == 1:
        child = os.fork()
        if child:
            be_init(child, job["deadline"])
    become(job)
    sys.exit(run(job["entry"], job["program"], job["inputs"], job["args"]))


def become(job):
    """Prepares the files, the environment and the standard input of the job's program."""
    import os
    import random

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
    os.chdir(job["env"]["HOME"])
    random.seed()


def be_init(child, deadline):
    import os
    import signal

    def pass_on(*_):
        try:
            os.kill(-1, signal.SIGTERM)
        except OSError:
            pass

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(137))
    signal.alarm(deadline)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


import asyncio, collections, csv, datetime, io, itertools, json, linecache, math, os, random, re, statistics, time, traceback, types

wait()
