#!/usr/bin/env python3
"""Profiles a CSV or TSV file: python3 profile_csv.py FILE [--delimiter ;]. Prints JSON. Standard library only."""
import argparse
import collections
import csv
import datetime
import io
import json
import math
import re
import statistics
import sys

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
DATE_FORMS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"] + [
    f"%Y-%m-%d{between}%H:%M{rest}" for between in "T " for rest in ("", ":%S", ":%S.%f", ":%S%z", ":%S.%f%z")
]
BYTE_ORDERS = (b"\xff\xfe", b"\xfe\xff")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WRITTEN_NUMBER = re.compile(r"[^\d+-]{0,3}\s?([+-]?\d{1,3}([,.' ]\d{3})+|[+-]?\d+)([.,]\d{1,4})?\s?[^\d]{0,4}")
MOST_SHOWN = 5


def read_text(path):
    """The text of a file and its encoding."""
    with open(path, "rb") as file:
        data = file.read()
    # spreadsheets write it as "Unicode text"
    for encoding in ("utf-16",) if data[:2] in BYTE_ORDERS else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding), encoding.replace("-sig", "")
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def delimiter_of(text):
    """The delimiter that splits the first lines into the same number of fields, more than one."""
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    best = (0, 0, ",")
    for delimiter in ",;\t|":
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        if not counts:
            continue
        fields, alike = collections.Counter(counts).most_common(1)[0]
        if fields > 1:
            best = max(best, (alike / len(counts), fields, delimiter), key=lambda found: found[:2])
    return best[2]


def read_rows(path, delimiter=None):
    """The names of the columns, the rows as lists of text, and how the file was read."""
    text, encoding = read_text(path)
    delimiter = delimiter or delimiter_of(text)
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    if not rows:
        raise ValueError("the file has no rows")
    names = [name.strip() or f"column_{index + 1}" for index, name in enumerate(rows[0])]
    for index, name in enumerate(names):
        if name in names[:index]:
            names[index] = f"{name}_{index + 1}"
    return names, rows[1:], {"encoding": encoding, "delimiter": delimiter}


def is_missing(value):
    return value.strip().lower() in MISSING


def number(value):
    """A number as programs write it, or None; one that is too large to compute with is none."""
    value = value.strip()
    found = float(value) if PLAIN_NUMBER.fullmatch(value) else math.inf
    return found if math.isfinite(found) else None


def date(value, form):
    try:
        return datetime.datetime.strptime(value.strip(), form)
    except ValueError:
        return None


def date_form(values):
    """The form that all values have, and whether day and month can be told apart; (None, None) for other values."""
    different = set(values)
    fitting = [form for form in DATE_FORMS if all(date(value, form) for value in different)]
    if not fitting:
        return None, None
    if len(fitting) > 1 and {"%d/%m/%Y", "%m/%d/%Y"} <= set(fitting):
        return fitting[0], "ambiguous"
    return fitting[0], "certain"


def numbers_of(values):
    found = sorted(values)
    quarters = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else [found[0]] * 3
    spread = quarters[2] - quarters[0]
    mean = statistics.fmean(found)
    low, high = quarters[0] - 3 * spread, quarters[2] + 3 * spread
    return {
        "min": found[0],
        "max": found[-1],
        "sum": math.fsum(found),
        "mean": mean,
        "median": quarters[1],
        "quartiles": [quarters[0], quarters[2]],
        "deviation": math.sqrt(statistics.fmean((value - mean) ** 2 for value in found)),
        "far_outside": sum(1 for value in found if value < low or value > high) if spread > 0 else 0,
    }


def column_of(name, values, warnings):
    """The profile of one column."""
    present = [value for value in values if not is_missing(value)]
    column = {"name": name, "missing": len(values) - len(present), "distinct": len(set(present))}
    if not present:
        return {**column, "type": "empty"}
    numbers = [number(value) for value in present]
    valid = [value for value in numbers if value is not None]
    if len(valid) == len(present):
        figures = numbers_of(valid)
        if figures["far_outside"]:
            warnings.append(f"{name}: values far outside the quartiles: {figures['far_outside']}")
        whole = all(value.is_integer() for value in valid)
        return {**column, "type": "integer" if whole else "number", **figures}
    form, order = date_form(present)
    if form:
        dates = [date(value, form) for value in set(present)]
        if order == "ambiguous":
            warnings.append(f"{name}: day and month cannot be told apart")
        first, last = min(dates).isoformat(), max(dates).isoformat()
        return {**column, "type": "date", "format": form, "date_order": order, "first": first, "last": last}
    if len(valid) > len(present) / 2:
        bad = [value for value, found in zip(present, numbers) if found is None][:MOST_SHOWN]
        warnings.append(f"{name}: mostly numbers, but also text: {bad}")
    elif all(WRITTEN_NUMBER.fullmatch(value.strip()) for value in present[:1000]):
        warnings.append(f"{name}: numbers written as text, such as {present[0]!r}; convert them before computing")
    if any(value != value.strip() for value in present):
        warnings.append(f"{name}: values with spaces around them")
    folded = collections.Counter(value.strip().lower() for value in set(present))
    same = [value for value, count in folded.items() if count > 1][:MOST_SHOWN]
    if same:
        warnings.append(f"{name}: the same value in several spellings: {same}")
    top = [{"value": value[:80], "count": count} for value, count in collections.Counter(present).most_common(MOST_SHOWN)]
    return {**column, "type": "text", "longest": max(map(len, present)), "top": top}


def profile(path, delimiter=None):
    """What the file contains, as a dictionary for JSON."""
    names, rows, read = read_rows(path, delimiter)
    warnings = []
    odd = [index + 2 for index, row in enumerate(rows) if len(row) != len(names)]
    if odd:
        warnings.append(f"rows without {len(names)} fields: {len(odd)}, the first is row {odd[0]}")
    duplicates = len(rows) - len({tuple(row) for row in rows})
    if duplicates:
        warnings.append(f"rows that repeat an earlier one: {duplicates}")
    columns = [
        column_of(name, [row[index] if index < len(row) else "" for row in rows], warnings)
        for index, name in enumerate(names)
    ]
    return {**read, "rows": len(rows), "duplicates": duplicates, "columns": columns, "warnings": warnings}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--delimiter")
    options = parser.parse_args()
    try:
        print(json.dumps(profile(options.file, options.delimiter), ensure_ascii=False))
    except (OSError, ValueError, OverflowError, csv.Error) as fault:
        sys.exit(f"error: {fault}")


if __name__ == "__main__":
    main()
