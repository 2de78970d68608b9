"""Runs one piece of Python for the runner, the same way in every sandbox.

Called as a program (`harness.py ENTRY SOURCE_PATH [ARG...]`) or, where the interpreter is embedded,
through `run`. ENTRY is `code`, with `inputs` predefined, or `tool`, a script as its author wrote it.
"""

import sys


def run(entry, path, inputs_path, args):
    """Executes the file at `path` as `__main__`; returns the exit code. Tracebacks show that file only."""
    import json
    import os
    import types

    for stream in (sys.stdout, sys.stderr):
        # line buffering shows each line immediately; lone surrogates must not cause an error
        stream.reconfigure(encoding="utf-8", errors="surrogatepass", line_buffering=True)

    name = "code.py" if entry == "code" else "tool.py"
    module = types.ModuleType("__main__")
    module.__file__ = path
    if entry == "code":
        with open(inputs_path, encoding="utf-8") as file:
            module.inputs = json.load(file)
        if "CORTEX_WORKSPACE" in os.environ:
            # last, so that no file hides a module
            sys.path.append(os.environ["CORTEX_WORKSPACE"])
    sys.argv = [path, *args]
    sys.modules["__main__"] = module
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        remember(name, source)
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
        code = 0
    except SystemExit as stop:
        code = exit_code(stop.code)
    except BaseException as fault:
        report(fault)
        code = 1
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        pass
    return code


def remember(name, source):
    """Lets tracebacks quote the source, which is not in a file of that name."""
    import linecache

    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)


def report(fault):
    import traceback

    trace = fault.__traceback__
    # the frame of `run`
    fault.__traceback__ = trace.tb_next if trace is not None else None
    traceback.print_exception(fault)


def exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    import os

    sys.exit(run(sys.argv[1], sys.argv[2], os.environ["CORTEX_INPUTS"], sys.argv[3:]))
