"""Measures the machine. Values that cannot be read are null, for example in a sandbox without /proc."""

import json
import os
import shutil


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return None


def load():
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        return None


def memory():
    text = read("/proc/meminfo")
    if text is None:
        return None
    kib = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        amount = rest.split()[:1]
        if amount and amount[0].isdigit():
            kib[name] = int(amount[0])
    if "MemTotal" not in kib or "MemAvailable" not in kib:
        return None
    return {"total_mb": kib["MemTotal"] // 1024, "available_mb": kib["MemAvailable"] // 1024}


def disk():
    try:
        usage = shutil.disk_usage("/")
    except (AttributeError, OSError):
        return None
    return {"total_mb": usage.total // 2**20, "free_mb": usage.free // 2**20}


def uptime():
    text = read("/proc/uptime")
    return None if text is None else float(text.split()[0])


print(
    json.dumps(
        {
            "processors": os.cpu_count(),
            "load": load(),
            "memory": memory(),
            "disk": disk(),
            "uptime_seconds": uptime(),
        }
    )
)
