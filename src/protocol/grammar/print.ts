/** Grammars in the notations of the engines that decode under them: GBNF (llama.cpp, XGrammar) and Lark (llguidance). */
import type { CodeRange, Expression, Rule } from './model.ts';

export type GrammarFormat = 'gbnf' | 'lark';

/** A way to write down expressions. The rule called `root` is where the grammar begins. */
interface Notation {
  readonly comment: string;
  readonly define: string;
  /** Before a further alternative on a line of its own, and after the one before it. */
  readonly alternative: readonly [after: string, before: string];
  readonly name: (rule: Rule) => string;
  readonly text: (text: string) => string;
  readonly characters: (body: string, count: string) => string;
  readonly count: (min: number, max: number | null) => string | null;
}

const GBNF: Notation = {
  comment: '#',
  define: ' ::= ',
  alternative: [' |', ''],
  name: ({ name }) => name,
  text: (text) => `"${escapeText(text)}"`,
  characters: (body, count) => `[${body}]${count}`,
  count: (min, max) => (max === min ? `{${min}}` : `{${min},${max ?? ''}}`),
};

const LARK: Notation = {
  comment: '//',
  define: ': ',
  alternative: ['', '| '],
  // Upper case makes a terminal: what the lexer, not the parser, reads.
  name: ({ name, lexeme }) => {
    if (name === 'root') return 'start';
    const spelled = name.replaceAll('-', '_');
    return lexeme ? spelled.toUpperCase() : spelled;
  },
  text: (text) => `"${escapeText(text)}"`,
  characters: (body, count) => `/[${body}]${count}/`,
  count: (min, max) => (max === null ? null : max === min ? `~${min}` : `~${min}..${max}`),
};

/** The whole grammar as text; `title` becomes a comment in its first lines. */
export function printGrammar(rules: readonly Rule[], format: GrammarFormat, title: readonly string[]): string {
  const printer = new Printer(rules, format === 'gbnf' ? GBNF : LARK, format);
  return printer.print(title);
}

class Printer {
  readonly #rules: ReadonlyMap<string, Rule>;
  readonly #notation: Notation;
  readonly #format: GrammarFormat;

  constructor(rules: readonly Rule[], notation: Notation, format: GrammarFormat) {
    this.#rules = new Map(rules.map((rule) => [rule.name, rule]));
    this.#notation = notation;
    this.#format = format;
  }

  print(title: readonly string[]): string {
    const { comment, define, name } = this.#notation;
    const lines = title.map((line) => `${comment} ${line}`);
    for (const rule of this.#used()) lines.push(`${name(rule)}${define}${this.#body(rule.expression)}`);
    return `${lines.join('\n')}\n`;
  }

  /** The rules that the root needs, itself first: some engines refuse or warn about others. */
  #used(): Rule[] {
    const used = new Map<string, Rule>();
    const visit = (name: string): void => {
      const rule = this.#rules.get(name);
      if (rule === undefined || used.has(name)) return;
      used.set(name, rule);
      walk(rule.expression, visit);
    };
    visit('root');
    return [...used.values()];
  }

  #body(expression: Expression): string {
    if (expression.kind !== 'choice') return this.#print(expression, 0);
    const [after, before] = this.#notation.alternative;
    return expression.items.map((item) => this.#print(item, 1)).join(`${after}\n  ${before}`);
  }

  /** @param binding 0: alone, 1: in a choice, 2: in a sequence, 3: under a repetition */
  #print(expression: Expression, binding: number): string {
    switch (expression.kind) {
      case 'text':
        return this.#notation.text(expression.text);
      case 'class':
        return this.#notation.characters(this.#classBody(expression), '');
      case 'rule': {
        const rule = this.#rules.get(expression.name);
        return rule === undefined ? expression.name : this.#notation.name(rule);
      }
      case 'sequence': {
        if (expression.items.length === 0) return '""';
        const all = expression.items.map((item) => this.#print(item, 2)).join(' ');
        return binding > 2 ? `(${all})` : all;
      }
      case 'choice': {
        const all = expression.items.map((item) => this.#print(item, 1)).join(' | ');
        return binding > 0 ? `(${all})` : all;
      }
      case 'repeat':
        return this.#repeat(expression.item, expression.min, expression.max);
    }
  }

  #repeat(item: Expression, min: number, max: number | null): string {
    const sign = min === 0 && max === 1 ? '?' : max === null && min < 2 ? (min === 0 ? '*' : '+') : null;
    if (item.kind === 'class') {
      const count = sign ?? (max === min ? `{${min}}` : `{${min},${max ?? ''}}`);
      return this.#notation.characters(this.#classBody(item), count);
    }
    const inner = this.#print(item, 3);
    if (sign !== null) return `${inner}${sign}`;
    const count = this.#notation.count(min, max);
    if (count !== null) return `${inner}${count}`;
    // without an upper bound, spelled out: so many, and then any number
    return `(${inner}${this.#notation.count(min, min) ?? ''} ${inner}*)`;
  }

  #classBody({ negated, ranges }: Extract<Expression, { kind: 'class' }>): string {
    // XGrammar writes controls back as `\x1f`, to which a letter behind it would be one more digit
    const ordered = ranges.toSorted((one, other) => Number(endsInControl(one)) - Number(endsInControl(other)));
    const body = ordered.map((range) => this.#range(range)).join('');
    return negated ? `^${body}` : body;
  }

  #range([from, to]: CodeRange): string {
    const begin = this.#character(from);
    return from === to ? begin : `${begin}-${this.#character(to)}`;
  }

  /** One character inside `[…]`: what could be read as an operator of a class or of the notation is escaped. */
  #character(code: number): string {
    if (code === 10) return '\\n';
    if (code === 9) return '\\t';
    if (code === 13) return '\\r';
    if (code < 32 || (code >= 127 && code <= 0xffff)) return escaped(code);
    const character = String.fromCodePoint(code);
    if (character === '\\') return '\\\\';
    if ('[]'.includes(character)) return `\\${character}`;
    if ('^-&~"'.includes(character) || (character === '/' && this.#format === 'lark')) return escaped(code);
    return character;
  }
}

function walk(expression: Expression, visit: (name: string) => void): void {
  switch (expression.kind) {
    case 'rule':
      visit(expression.name);
      return;
    case 'sequence':
    case 'choice':
      for (const item of expression.items) walk(item, visit);
      return;
    case 'repeat':
      walk(expression.item, visit);
      return;
    case 'text':
    case 'class':
  }
}

function endsInControl([, to]: CodeRange): boolean {
  return to < 32;
}

/** Four digits: with `\x`, some readers go on to a hexadecimal digit that stands behind it. Codes above FFFF stand as they are. */
function escaped(code: number): string {
  return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Inside `"…"`. Both notations know these escapes. */
function escapeText(text: string): string {
  return text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
}
