#!/usr/bin/env python3
"""Checks a report in Markdown: python3 check_report.py FILE. Prints one line for each issue; exit code 1 if it has any."""
import re
import sys

MOST_WORDS = 40
PLACEHOLDER = re.compile(r"\{[^{}\n]+\}|\bTODO\b|\bTBD\b|\bXXX\b|lorem ipsum", re.IGNORECASE)


def without_code(text):
    """The text with blank lines in place of code blocks, so that line numbers stay the same."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def sources_in(lines):
    """The line of the heading of the sources, and their numbers."""
    start = next((at for at, line in enumerate(lines) if re.match(r"#+\s+(sources|references)\b", line, re.I)), None)
    if start is None:
        return None, []
    return start, [int(found[1]) for line in lines[start + 1 :] if (found := re.match(r"\s*\[?(\d+)[.\])]", line))]


def check(text):
    """The issues as (line, message), in order."""
    lines = without_code(text).split("\n")
    issues = []
    level = 0
    for at, line in enumerate(lines, 1):
        for found in PLACEHOLDER.finditer(re.sub(r"`[^`]*`", "", line)):
            issues.append((at, f"text of the template was left in: {found[0]}"))
        heading = re.match(r"(#+)\s+\S", line)
        if heading:
            if len(heading[1]) > level + 1:
                issues.append((at, f"heading of level {len(heading[1])} below level {level}"))
            level = len(heading[1])
        if line.startswith("|") and at > 1 and lines[at - 2].startswith("|"):
            cells, before = (re.sub(r"\\\|", "", one).count("|") for one in (line, lines[at - 2]))
            if cells != before:
                issues.append((at, "row of a table with another number of cells"))
        for sentence in re.split(r"(?<=[.!?])\s+", line if not line.startswith("|") else ""):
            words = len(sentence.split())
            if words > MOST_WORDS:
                issues.append((at, f"sentence of {words} words: {sentence[:60]} …"))
    if not any(re.match(r"#+\s+summary\b", line, re.I) for line in lines):
        issues.append((1, "no section Summary"))
    start, numbers = sources_in(lines)
    body = lines if start is None else lines[:start]
    cited = {}
    for at, line in enumerate(body, 1):
        for found in re.finditer(r"\[(\d+)\](?!\()", line):
            cited.setdefault(int(found[1]), at)
    for source, at in cited.items():
        if source not in numbers:
            issues.append((at, f"[{source}] is cited, but it is not among the sources"))
    for source in numbers:
        if source not in cited:
            issues.append((start + 1, f"source {source} is never cited"))
    return sorted(issues)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            issues = check(file.read())
    except (OSError, UnicodeDecodeError) as fault:
        sys.exit(f"error: {fault}")
    for at, message in issues:
        print(f"{sys.argv[1]}:{at}: {message}")
    if issues:
        sys.exit(1)
    print("no issues")


if __name__ == "__main__":
    main()
