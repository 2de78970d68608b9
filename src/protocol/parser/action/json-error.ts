/** Finds the first syntax error of a JSON text, for messages that help a model to fix it. */

interface JsonError {
  /** Index of the wrong character; the text's length if it ends too early. */
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

/** @returns null if the text is strict JSON */
export function findJsonError(text: string): JsonError | null {
  let index = 0;
  const nesting: ('{' | '[')[] = [];
  let expect: Expected = 'value';
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = index;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  const error = (reason: string, at = index): JsonError => ({
    index: Math.min(at, text.length),
    reason: at >= text.length ? `the JSON ends too early: ${nesting.length} bracket(s) are still open` : reason,
  });
  for (;;) {
    index += match(SPACE);
    if (expect === 'next' && nesting.length === 0) {
      return index === text.length ? null : error('unexpected text after the end of the JSON value');
    }
    const character = text[index];
    if (character === undefined) return error('');
    if (expect === 'colon') {
      if (character !== ':') return error('expected ":" after a key');
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
        return error(
          `expected "," or "${inObject ? '}' : ']'}"; inside a string, write a quote as \\" and a line break as \\n`,
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
      return error(character === '}' ? 'unexpected comma before "}"' : 'a key must be in double quotes');
    }
    if (character === '{' || character === '[') {
      nesting.push(character);
      index += 1;
      expect = character === '{' ? 'first key' : 'first item';
      continue;
    }
    if (character === ']') return error('unexpected comma before "]"');
    const number = match(NUMBER);
    if (number > 0) {
      index += number;
      if (match(WORD) > 0) return error('invalid number');
      expect = 'next';
      continue;
    }
    const length = match(WORD);
    const word = text.slice(index, index + length);
    if (word !== 'true' && word !== 'false' && word !== 'null') {
      return error(length > 0 ? 'a string must be in double quotes' : 'expected a value');
    }
    index += length;
    expect = 'next';
  }

  function skipString(): JsonError | null {
    const start = index;
    index += 1;
    for (;;) {
      index += match(PLAIN_STRING);
      const character = text[index];
      if (character === undefined) return error('this string is not closed', start);
      if (character === '"') {
        index += 1;
        return null;
      }
      if (character !== '\\') {
        return error(
          character === '\n' || character === '\r'
            ? 'raw line break inside a string; write \\n'
            : 'raw control character inside a string; write it as an escape',
        );
      }
      const length = match(ESCAPE);
      if (length === 0) return error('invalid JSON escape; write a backslash as \\\\');
      index += length;
    }
  }
}
