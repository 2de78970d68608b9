/**
 * Reads grammars back from their text, so that tests judge what was printed: the part of GBNF and of
 * Lark that llama.cpp, Lark and llguidance agree on, and nothing more. Anything else throws.
 */
import type { CodeRange, Expression, Rule } from '../../src/protocol/grammar/model.ts';

export interface Grammar {
  readonly start: string;
  readonly rules: ReadonlyMap<string, Rule>;
}

type Token =
  | { readonly kind: 'name' | 'sign'; readonly text: string }
  | { readonly kind: 'item'; readonly item: Expression }
  | { readonly kind: 'count'; readonly min: number; readonly max: number | null };

/** @throws Error that names the place, for text that is no GBNF */
export function readGbnf(source: string): Grammar {
  const tokens = tokenize(source, [
    [/#[^\n]*/y, () => null],
    [/\n/y, () => ({ kind: 'sign', text: '\n' })],
    [/[ \t\r]+/y, () => null],
    [/::=|[()|*+?]/y, ([sign]) => ({ kind: 'sign', text: sign })],
    [/\{(\d+)(,?)(\d*)\}/y, ([, min = '', comma, max = '']) => count(min, comma === '' ? min : max)],
    [/[a-zA-Z0-9-]+/y, ([name]) => ({ kind: 'name', text: name })],
    [/"((?:[^"\\\n]|\\.)*)"/y, ([, body = '']) => ({ kind: 'item', item: literal(body) })],
    [/\[(\^?)((?:[^\]\\\n]|\\.)*)\]/y, ([, not, body = '']) => ({ kind: 'item', item: characterClass(not, body) })],
  ]);
  return readRules(tokens, 'root', '::=', (name) => ({ name, lexeme: false }));
}

/** @throws Error that names the place, for text that is no Lark */
export function readLark(source: string): Grammar {
  const tokens = tokenize(source, [
    [/\/\/[^\n]*/y, () => null],
    // a line that begins with `|` goes on with the rule before it
    [/\n(?=\s*\|)/y, () => null],
    [/\n/y, () => ({ kind: 'sign', text: '\n' })],
    [/[ \t\r]+/y, () => null],
    [/~(\d+)(\.\.)?(\d*)/y, ([, min = '', dots, max = '']) => count(min, dots === undefined ? min : max)],
    [/[:()|*+?]/y, ([sign]) => ({ kind: 'sign', text: sign })],
    [/[a-z][a-z0-9_]*|[A-Z][A-Z0-9_]*/y, ([name]) => ({ kind: 'name', text: name })],
    [/"((?:[^"\\\n]|\\.)*)"/y, ([, body = '']) => ({ kind: 'item', item: literal(body) })],
    [
      /\/\[(\^?)((?:[^\]\\\n/]|\\.)*)\]([*+?]|\{(\d+)(,?)(\d*)\})?\//y,
      ([, not, body = '', sign, min = '', comma, max = '']) => {
        const item = characterClass(not, body);
        if (sign === undefined) return { kind: 'item', item };
        const [from, to] = bounds(
          sign.startsWith('{') ? count(min, comma === '' ? min : max) : { kind: 'sign', text: sign },
        );
        return { kind: 'item', item: { kind: 'repeat', item, min: from, max: to } };
      },
    ],
  ]);
  const isLexeme = (name: string): boolean => name === name.toUpperCase();
  return readRules(tokens, 'start', ':', (name) => ({ name, lexeme: isLexeme(name) }));
}

type Lexer = readonly (readonly [RegExp, (match: readonly [string, ...(string | undefined)[]]) => Token | null])[];

function tokenize(source: string, lexer: Lexer): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < source.length;) {
    const start = at;
    for (const [pattern, make] of lexer) {
      pattern.lastIndex = at;
      const match = pattern.exec(source);
      if (match === null) continue;
      const token = make([match[0], ...match.slice(1)]);
      if (token !== null) tokens.push(token);
      at += match[0].length;
      break;
    }
    if (at === start) throw new Error(`unreadable at ${at}: ${source.slice(at, at + 40)}`);
  }
  return tokens;
}

function readRules(
  tokens: readonly Token[],
  start: string,
  define: string,
  head: (name: string) => Pick<Rule, 'name' | 'lexeme'>,
): Grammar {
  const rules = new Map<string, Rule>();
  let at = 0;
  const peek = (): Token | undefined => tokens[at];
  const isSign = (text: string): boolean => {
    const token = tokens[at];
    return token?.kind === 'sign' && token.text === text;
  };
  const take = (text: string): boolean => {
    if (!isSign(text)) return false;
    at += 1;
    return true;
  };
  const choice = (depth: number): Expression => {
    const items = [sequence(depth)];
    while (take('|')) {
      while (take('\n'));
      items.push(sequence(depth));
    }
    const [only] = items;
    return items.length === 1 && only !== undefined ? only : { kind: 'choice', items };
  };
  const sequence = (depth: number): Expression => {
    const items: Expression[] = [];
    for (;;) {
      const token = peek();
      if (token === undefined || isSign('|') || isSign(')') || isSign('\n')) break;
      let item: Expression;
      if (token.kind === 'item') {
        ({ item } = token);
        at += 1;
      } else if (token.kind === 'name') {
        item = { kind: 'rule', name: token.text };
        at += 1;
      } else if (take('(')) {
        item = choice(depth + 1);
        if (!take(')')) throw new Error('a parenthesis is not closed');
      } else throw new Error(`unexpected ${JSON.stringify(token)}`);
      for (let next = peek(); next?.kind === 'count' || isSign('*') || isSign('+') || isSign('?'); next = peek()) {
        if (next === undefined) break;
        const [min, max] = bounds(next);
        item = { kind: 'repeat', item, min, max };
        at += 1;
      }
      items.push(item);
    }
    const [only] = items;
    return items.length === 1 && only !== undefined ? only : { kind: 'sequence', items };
  };
  while (at < tokens.length) {
    if (take('\n')) continue;
    const name = peek();
    at += 1;
    if (name?.kind !== 'name' || !take(define)) throw new Error(`expected a rule, found ${JSON.stringify(name)}`);
    if (rules.has(name.text)) throw new Error(`the rule ${name.text} is defined twice`);
    rules.set(name.text, { ...head(name.text), expression: choice(0) });
    if (at < tokens.length && !isSign('\n')) throw new Error(`the rule ${name.text} does not end`);
  }
  check(rules, start);
  return { start, rules };
}

/** Every name leads to a rule, no rule is useless, and lexemes hold nothing but lexemes and never themselves. */
function check(rules: ReadonlyMap<string, Rule>, start: string): void {
  const used = new Set<string>();
  const visit = (name: string, within: readonly string[]): void => {
    const rule = rules.get(name);
    if (rule === undefined) throw new Error(`no rule is called ${name}`);
    const parent = rules.get(within.at(-1) ?? '');
    if (parent?.lexeme === true && !rule.lexeme) throw new Error(`the lexeme ${parent.name} uses the rule ${name}`);
    if (rule.lexeme && within.includes(name)) throw new Error(`the lexeme ${name} contains itself`);
    if (used.has(name)) return;
    used.add(name);
    for (const inner of namesIn(rule.expression)) visit(inner, [...within, name]);
  };
  visit(start, []);
  for (const name of rules.keys()) if (!used.has(name)) throw new Error(`the rule ${name} is never used`);
}

function namesIn(expression: Expression): string[] {
  switch (expression.kind) {
    case 'rule':
      return [expression.name];
    case 'sequence':
    case 'choice':
      return expression.items.flatMap(namesIn);
    case 'repeat':
      return namesIn(expression.item);
    default:
      return [];
  }
}

function count(min: string, max: string): Token & { kind: 'count' } {
  return { kind: 'count', min: Number(min), max: max === '' ? null : Number(max) };
}

function bounds(token: Token): [min: number, max: number | null] {
  if (token.kind === 'count') return [token.min, token.max];
  const text = token.kind === 'sign' ? token.text : '';
  return text === '*' ? [0, null] : text === '+' ? [1, null] : [0, 1];
}

function literal(body: string): Expression {
  return {
    kind: 'text',
    text: units(body)
      .map(([code]) => String.fromCodePoint(code))
      .join(''),
  };
}

function characterClass(not: string | undefined, body: string): Expression {
  const codes = units(body);
  const ranges: CodeRange[] = [];
  for (let index = 0; index < codes.length; index += 1) {
    const [from] = codes[index] ?? [0];
    const isDash = codes[index + 1]?.[0] === 45 && codes[index + 1]?.[1] === false;
    const to = isDash ? codes[index + 2] : undefined;
    ranges.push([from, to?.[0] ?? from]);
    if (to !== undefined) index += 2;
  }
  return { kind: 'class', negated: not === '^', ranges };
}

/** Code points of a literal or class, and whether each was escaped. */
function units(body: string): [code: number, escaped: boolean][] {
  const found: [number, boolean][] = [];
  for (const [whole, hex2, hex4, simple] of body.matchAll(/\\x([0-9A-F]{2})|\\u([0-9A-F]{4})|\\(.)|[^\\]/gsu)) {
    if (hex2 !== undefined || hex4 !== undefined) found.push([Number.parseInt(hex2 ?? hex4 ?? '', 16), true]);
    else if (simple !== undefined) {
      const known: Readonly<Record<string, string>> = {
        n: '\n',
        t: '\t',
        r: '\r',
        '"': '"',
        '\\': '\\',
        '[': '[',
        ']': ']',
      };
      const meant = known[simple];
      if (meant === undefined) throw new Error(`unknown escape \\${simple}`);
      found.push([meant.codePointAt(0) ?? 0, true]);
    } else found.push([whole.codePointAt(0) ?? 0, false]);
  }
  return found;
}
