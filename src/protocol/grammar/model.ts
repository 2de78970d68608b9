/**
 * A grammar as data, apart from the notation in which it is printed: expressions, rules, and the
 * book in which the rules of one grammar are kept.
 *
 * A rule is either a lexeme, which is regular and stands for one unbroken stretch of text, or made of
 * lexemes. Notations without a lexer (GBNF) need no such difference; in those with one (Lark) every
 * lexeme must end where the longest match ends, so lexemes that may follow each other never begin
 * with what could continue the one before.
 */
export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  /** One code point out of these inclusive ranges, or, negated, one outside of them. */
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly CodeRange[] }
  | { readonly kind: 'sequence'; readonly items: readonly Expression[] }
  | { readonly kind: 'choice'; readonly items: readonly Expression[] }
  /** `max` null = without end. */
  | { readonly kind: 'repeat'; readonly item: Expression; readonly min: number; readonly max: number | null }
  | { readonly kind: 'rule'; readonly name: string };

export type CodeRange = readonly [from: number, to: number];

export interface Rule {
  /** Lower case words joined by `-`. */
  readonly name: string;
  readonly lexeme: boolean;
  readonly expression: Expression;
}

export const NOTHING: Expression = { kind: 'sequence', items: [] };

export function text(value: string): Expression {
  return value === '' ? NOTHING : { kind: 'text', text: value };
}

/** Characters one by one, and ranges as `a-z`: a `-` stands for itself at the beginning or end only. */
export function oneOf(characters: string): Expression {
  return { kind: 'class', negated: false, ranges: rangesOf(characters) };
}

export function noneOf(characters: string): Expression {
  return { kind: 'class', negated: true, ranges: rangesOf(characters) };
}

function rangesOf(characters: string): CodeRange[] {
  const codes = Array.from(characters, (character) => character.codePointAt(0) ?? 0);
  const ranges: CodeRange[] = [];
  for (let index = 0; index < codes.length; index += 1) {
    const from = codes[index] ?? 0;
    const isRange = codes[index + 1] === 45 && index + 2 < codes.length;
    ranges.push([from, isRange ? (codes[index + 2] ?? from) : from]);
    if (isRange) index += 2;
  }
  return ranges;
}

export function sequence(...items: readonly Expression[]): Expression {
  const flat: Expression[] = [];
  for (const item of items.flatMap((part) => (part.kind === 'sequence' ? part.items : [part]))) {
    const last = flat.at(-1);
    if (item.kind === 'text' && last?.kind === 'text') flat[flat.length - 1] = text(last.text + item.text);
    else flat.push(item);
  }
  const [only] = flat;
  return flat.length === 1 && only !== undefined ? only : { kind: 'sequence', items: flat };
}

/** @throws RangeError without an alternative: nothing could match */
export function choice(...items: readonly Expression[]): Expression {
  const seen = new Set<string>();
  const flat = items
    .flatMap((item) => (item.kind === 'choice' ? item.items : [item]))
    .filter((item) => item.kind !== 'rule' || (!seen.has(item.name) && seen.add(item.name)));
  const [only] = flat;
  if (only === undefined) throw new RangeError('a choice needs at least one alternative');
  return flat.length === 1 ? only : { kind: 'choice', items: flat };
}

export function repeat(item: Expression, min: number, max: number | null): Expression {
  if (max === 0) return NOTHING;
  // notations disagree on a repetition of a repetition
  if (item.kind === 'repeat' && min === 0 && max === 1 && item.min < 2) return { ...item, min: 0 };
  return min === 1 && max === 1 ? item : { kind: 'repeat', item, min, max };
}

export function optional(...items: readonly Expression[]): Expression {
  const item = sequence(...items);
  return item === NOTHING ? NOTHING : repeat(item, 0, 1);
}

export function many(item: Expression): Expression {
  return repeat(item, 0, null);
}

/** `item`, or several of them with `separator` between. */
export function separated(item: Expression, separator: Expression, min = 1, max: number | null = null): Expression {
  const all = sequence(
    item,
    repeat(sequence(separator, item), Math.max(0, min - 1), max === null ? null : Math.max(0, max - 1)),
  );
  return min === 0 ? optional(all) : all;
}

/** Each of the two at most once, in either order. */
export function eitherOrder(one: Expression, other: Expression): Expression {
  return optional(choice(sequence(one, optional(other)), sequence(other, optional(one))));
}

/** The rules of one grammar, in the order in which they were named. */
export class RuleBook {
  readonly #rules = new Map<string, Rule>();

  /** Defines a rule made of lexemes under this name, or one like it that is free. */
  rule(name: string, expression: Expression): Expression {
    return this.#define(name, false, expression);
  }

  /** Defines a lexeme: regular, so `expression` may only use other lexemes. */
  lexeme(name: string, expression: Expression): Expression {
    return this.#define(name, true, expression);
  }

  /** Reserves a name before its expression is known, for rules that contain themselves. */
  recursive(name: string, define: (itself: Expression) => Expression): Expression {
    const itself = this.rule(name, NOTHING);
    if (itself.kind === 'rule') {
      this.#rules.set(itself.name, { name: itself.name, lexeme: false, expression: define(itself) });
    }
    return itself;
  }

  rules(): Rule[] {
    return [...this.#rules.values()];
  }

  #define(wanted: string, lexeme: boolean, expression: Expression): Expression {
    const base =
      wanted
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^[^a-z]+|-$/g, '') || 'rule';
    let name = base;
    for (let count = 2; this.#rules.has(name); count += 1) name = `${base}-${count}`;
    this.#rules.set(name, { name, lexeme, expression });
    return { kind: 'rule', name };
  }
}
