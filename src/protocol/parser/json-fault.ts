/** Where a text stops being one strict JSON value, and what was wrong: for messages that help a model mend it. */

interface JsonFault {
  /** Index of the character at fault; the text's length when it ends too early. */
  readonly index: number;
  readonly reason: string;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[\p{L}\p{N}_$.+-]+/uy;
const SPACE = /[ \t\r\n]*/y;
// eslint-disable-next-line no-control-regex
const PLAIN_STRING = /[^"\\\u0000-\u001F]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

type Expected = 'value' | 'key' | 'first key' | 'first item' | 'colon' | 'next';

/** @returns null for strict JSON */
export function findJsonFault(text: string): JsonFault | null {
  let index = 0;
  const nesting: ('{' | '[')[] = [];
  let expect: Expected = 'value';
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = index;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  const fault = (reason: string, at = index): JsonFault => ({
    index: Math.min(at, text.length),
    reason: at >= text.length ? `the JSON ends too early: ${nesting.length} bracket(s) still open` : reason,
  });
  for (;;) {
    index += match(SPACE);
    if (expect === 'next' && nesting.length === 0) {
      return index === text.length ? null : fault('there is more text after the end of the JSON value');
    }
    const character = text[index];
    if (character === undefined) return fault('');
    if (expect === 'colon') {
      if (character !== ':') return fault('expected ":" after a key');
      index += 1;
      expect = 'value';
      continue;
    }
    if (expect === 'next') {
      const inObject = nesting.at(-1) === '{';
      if (character === ',') {
        index += 1;
        expect = inObject ? 'key' : 'value';
        continue;
      }
      if (character !== (inObject ? '}' : ']')) {
        return fault(
          `expected "," or "${inObject ? '}' : ']'}"; a quote inside a string is written \\", a line break \\n`,
        );
      }
      index += 1;
      nesting.pop();
      continue;
    }
    if ((expect === 'first key' && character === '}') || (expect === 'first item' && character === ']')) {
      index += 1;
      nesting.pop();
      expect = 'next';
      continue;
    }
    const wantsKey: boolean = expect === 'key' || expect === 'first key';
    if (character === '"') {
      const problem = skipString();
      if (problem !== null) return problem;
      expect = wantsKey ? 'colon' : 'next';
      continue;
    }
    if (wantsKey) {
      return fault(character === '}' ? 'a comma before "}"' : 'a key must stand in double quotes');
    }
    if (character === '{' || character === '[') {
      nesting.push(character);
      index += 1;
      expect = character === '{' ? 'first key' : 'first item';
      continue;
    }
    if (character === ']') return fault('a comma before "]"');
    const number = match(NUMBER);
    if (number > 0) {
      index += number;
      if (match(WORD) > 0) return fault('this is not a number');
      expect = 'next';
      continue;
    }
    const length = match(WORD);
    const word = text.slice(index, index + length);
    if (word !== 'true' && word !== 'false' && word !== 'null') {
      return fault(length > 0 ? 'a text must stand in double quotes' : 'a value was expected here');
    }
    index += length;
    expect = 'next';
  }

  function skipString(): JsonFault | null {
    const start = index;
    index += 1;
    for (;;) {
      index += match(PLAIN_STRING);
      const character = text[index];
      if (character === undefined) return fault('this string never ends', start);
      if (character === '"') {
        index += 1;
        return null;
      }
      if (character !== '\\') {
        return fault(
          character === '\n' || character === '\r'
            ? 'a raw line break inside a string; write \\n'
            : 'a raw control character inside a string; write it as an escape',
        );
      }
      const length = match(ESCAPE);
      if (length === 0) return fault('this is no JSON escape; a backslash is written \\\\');
      index += length;
    }
  }
}
