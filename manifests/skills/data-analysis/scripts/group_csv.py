#!/usr/bin/env python3
"""Groups the rows of a CSV file and computes figures of one column. Prints JSON. Standard library only.

python3 group_csv.py FILE --by region --by date:month --value amount --how count,sum,mean --where status=paid --top 10
"""
import argparse
import csv
import json
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profile_csv import date, date_form, is_missing, number, read_rows  # noqa: E402

FIGURES = {
    "count": len,
    "sum": math.fsum,
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}
PARTS = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "weekday": "%A"}


def keys_of(column, values):
    """The values that a column is grouped by; `date:month` is a part of a date."""
    name, _, part = column.partition(":")
    if not part:
        return [value.strip() for value in values]
    if part not in PARTS:
        raise ValueError(f"{column}: the part must be one of {', '.join(PARTS)}")
    form, _ = date_form([value for value in values if not is_missing(value)])
    if form is None:
        raise ValueError(f"{name} is not a column of dates in one form")
    parts = {value: "" if is_missing(value) else date(value, form).strftime(PARTS[part]) for value in set(values)}
    return [parts[value] for value in values]


def group(path, by, value=None, how=("count",), where=None, top=None, delimiter=None):
    """The figures of each group, the largest first. Values that are missing or no numbers are counted, not used."""
    names, rows, _ = read_rows(path, delimiter)
    wanted = [column.partition(":")[0] for column in by] + list(where or {}) + ([value] if value else [])
    for name in wanted:
        if name not in names:
            raise ValueError(f"there is no column {name!r} (columns: {', '.join(names)})")
    for figure in how:
        if figure not in FIGURES:
            raise ValueError(f"{figure!r} is not a figure (figures: {', '.join(FIGURES)})")
    if value is None and set(how) != {"count"}:
        raise ValueError("without a value, only count can be computed")

    def cells(name, kept):
        index = names.index(name)
        return [row[index] if index < len(row) else "" for row in kept]

    kept = rows
    for name, text in (where or {}).items():
        kept = [row for row, cell in zip(kept, cells(name, kept)) if cell.strip() == text]
    keys = list(zip(*[keys_of(column, cells(column.partition(":")[0], kept)) for column in by]))
    found = [number(cell) for cell in cells(value, kept)] if value else [1.0] * len(kept)
    groups = {}
    for key, amount in zip(keys, found):
        groups.setdefault(key, []).append(amount)
    result = []
    for key, amounts in groups.items():
        used = [amount for amount in amounts if amount is not None]
        figures = {figure: FIGURES[figure](used) if used or figure in ("count", "sum") else None for figure in how}
        result.append({**dict(zip(by, key)), **figures, "rows": len(amounts), "left_out": len(amounts) - len(used)})
    first = next((figure for figure in how if figure != "count"), "count")
    result.sort(key=lambda entry: (entry[first] is not None, entry[first]), reverse=True)
    return {"rows": len(kept), "groups": len(result), "result": result[:top] if top else result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--by", action="append", required=True)
    parser.add_argument("--value")
    parser.add_argument("--how", default="count")
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--top", type=int)
    parser.add_argument("--delimiter")
    options = parser.parse_args()
    where = dict(entry.partition("=")[::2] for entry in options.where)
    try:
        found = group(
            options.file, options.by, options.value, options.how.split(","), where, options.top, options.delimiter
        )
    except (OSError, ValueError, OverflowError, csv.Error) as fault:
        sys.exit(f"error: {fault}")
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
