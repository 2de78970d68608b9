"""Statistics of a text in any script.

Reads its parameters as one JSON object from the first argument, else from the file named by
CORTEX_INPUTS, else from standard input; writes one JSON object to standard output. For invalid
parameters the object is {"success": false, "error": ...}. Standard library only.
"""

import json
import os
import sys
import unicodedata
from collections import Counter

COMMON_ENGLISH = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do
    does for from had has have he her here him his how i if in into is it its just like may me more most my
    no not now of on one only or other our out over s she so some such t than that the their them then there
    these they this those through to too under up us very was we were what when where which while who why
    will with would you your""".split()
)
SENTENCE_ENDS = frozenset(".!?\u2026\u061f\u06d4\u0964\u0965\u1362\u3002\uff01\uff0e\uff1f\uff61\u203c\u2047\u2048\u2049")
# these end a sentence even without a space after them, as their scripts write none
WIDE_ENDS = frozenset("\u3002\uff01\uff0e\uff1f\uff61")
ABBREVIATIONS = frozenset("dr mr mrs ms prof sr jr st vs etc fig no vol".split())
CLOSERS = frozenset("\"')]}\u00bb\u2019\u201d\u300d\u300f\uff09")
JOINERS = frozenset("'\u2019-\u2010\u2011\u00b7")
# scripts without spaces between words: each character counts as a word, as in word processors
UNSPACED = (
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


def kind_of(char):
    """'w' part of a word, 'i' a word by itself, 'j' joins two word parts, 's' white space, 'x' anything else."""
    point = ord(char)
    if any(low <= point <= high for low, high in UNSPACED) and unicodedata.category(char)[0] == "L":
        return "i"
    if unicodedata.category(char)[0] in "LMN":
        return "w"
    if char in JOINERS:
        return "j"
    return "s" if char.isspace() else "x"


def words_of(text, kinds):
    words = []
    start = None
    length = len(text)
    for index, char in enumerate(text):
        kind = kinds[char]
        if kind == "w":
            if start is None:
                start = index
            continue
        joins = kind == "j" or (char in ".," and text[index - 1].isdigit() and text[index + 1 : index + 2].isdigit())
        if joins and start is not None and index + 1 < length and kinds[text[index + 1]] == "w":
            continue
        if start is not None:
            words.append(text[start:index])
            start = None
        if kind == "i":
            words.append(char)
    if start is not None:
        words.append(text[start:])
    return words


def count_sentences(text, kinds):
    sentences = 0
    open_sentence = False
    index = 0
    length = len(text)
    while index < length:
        char = text[index]
        if kinds[char] in "wi":
            open_sentence = True
        elif open_sentence and char in SENTENCE_ENDS:
            end = index + 1
            while end < length and (text[end] in SENTENCE_ENDS or text[end] in CLOSERS):
                end += 1
            after = end
            while after < length and text[after].isspace():
                after += 1
            # "3.14", "e.g. this": a full stop inside a number or before a lowercase letter does not end a sentence
            ends = char in WIDE_ENDS or after == length or (after > end and not text[after : after + 1].islower())
            if ends and char == "." and after < length and is_abbreviation(text, index):
                ends = False
            if ends:
                sentences += 1
                open_sentence = False
            index = end
            continue
        elif open_sentence and char == "\n" and text[index + 1 : index + 2] == "\n":
            sentences += 1
            open_sentence = False
        index += 1
    return sentences + (1 if open_sentence else 0)


def is_abbreviation(text, stop):
    """Whether the word before the full stop is a title or an initial, as in "Dr. Smith" and "J. Smith"."""
    start = stop
    while start > 0 and stop - start < 6 and text[start - 1].isalpha():
        start -= 1
    word = text[start:stop]
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")


def syllables(word):
    """An estimate for English: the number of vowel groups, without a silent final e."""
    plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(c))
    groups = 0
    in_vowels = False
    for char in plain:
        vowel = char in "aeiouy\u00e6\u0153\u00f8"
        groups += vowel and not in_vowels
        in_vowels = vowel
    if plain.endswith("e") and not plain.endswith(("le", "ee", "ie", "oe", "ye")) and groups > 1:
        groups -= 1
    return max(1, groups)


def is_latin(word):
    return all(not c.isalpha() or "LATIN" in unicodedata.name(c, "") for c in word)


def readability_of(words, sentences, kinds):
    """Flesch scores if most words are in Latin letters; LIX if words are separated by spaces; otherwise null."""
    result = {"flesch_reading_ease": None, "flesch_kincaid_grade": None, "lix": None}
    spaced = [word for word in words if len(word) > 1 or kinds[word] != "i"]
    if not words or not sentences or len(spaced) < 0.5 * len(words):
        return result
    per_sentence = len(words) / sentences
    letters = {word: sum(1 for c in word if kinds[c] == "w") for word in set(words)}
    long_words = sum(1 for word in words if letters[word] > 6)
    result["lix"] = round(per_sentence + 100 * long_words / len(words), 1)
    counts = Counter(words)
    latin = {word: count for word, count in counts.items() if is_latin(word)}
    if sum(latin.values()) >= 0.8 * len(words):
        per_word = sum(syllables(word) * count for word, count in latin.items()) / sum(latin.values())
        result["flesch_reading_ease"] = round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1)
        result["flesch_kincaid_grade"] = round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1)
    return result


def statistics(text, top, ignore, words_per_minute):
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    kinds = {char: kind_of(char) for char in set(text)}
    words = words_of(text, kinds)
    folded = Counter(word.casefold() for word in words)
    sentences = count_sentences(text, kinds)
    total = len(words)
    skipped = COMMON_ENGLISH | {word.casefold() for word in ignore}
    frequent = sorted(
        ((word, count) for word, count in folded.items() if word not in skipped),
        key=lambda item: (-item[1], item[0]),
    )
    return {
        "characters": len(text),
        "characters_without_spaces": sum(1 for char in text if kinds[char] != "s"),
        "words": total,
        "unique_words": len(folded),
        "sentences": sentences,
        "paragraphs": sum(1 for part in text.split("\n\n") if part.strip()),
        "average_word_length": round(sum(map(len, words)) / total, 2) if total else 0,
        "average_sentence_length": round(total / sentences, 2) if sentences else 0,
        "lexical_diversity": round(len(folded) / total, 3) if total else 0,
        "reading_time_seconds": round(60 * total / words_per_minute, 1),
        "readability": readability_of(words, sentences, kinds),
        "top_words": [{"word": word, "count": count} for word, count in frequent[:top]],
    }


def read_parameters():
    if len(sys.argv) > 1:
        return json.loads(sys.argv[1])
    path = os.environ.get("CORTEX_INPUTS")
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(sys.stdin.read())


def main():
    try:
        parameters = read_parameters()
    except ValueError as error:
        return {"success": False, "error": f"the input is not JSON: {error}"}
    text = parameters.get("text") if isinstance(parameters, dict) else None
    if not isinstance(text, str):
        return {"success": False, "error": 'parameter "text" must be a string'}
    return statistics(
        text,
        int(parameters.get("top", 10)),
        [str(word) for word in parameters.get("ignore") or []],
        float(parameters.get("words_per_minute") or 238),
    )


print(json.dumps(main(), ensure_ascii=True))
