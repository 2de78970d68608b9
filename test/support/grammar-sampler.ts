/** Random sentences of a grammar: the same seed writes the same sentence. */
import type { Expression } from '../../src/protocol/grammar/model.ts';
import type { Grammar } from './grammar-reader.ts';

export interface Sample {
  readonly text: string;
  /** How often each rule was used. */
  readonly used: ReadonlyMap<string, number>;
}

/** Rules nested deeper than this take their shortest way out. */
const DEEP = 14;
/** Characters that a negated class should be tried with: what means something to some parser. */
const TELLING = Array.from('<<<</>">\\`~$${}[]|&\' \t\n\r\u0000\u0001eEacrstATRS_.-#\u007F\u00A0\u2028é中\u{1F600}');

export interface SamplerOptions {
  /** Rules of which no two uses in one sentence give the same text, as ids do. */
  readonly distinct?: readonly string[];
  /** Rules that are not taken where there is another way. */
  readonly avoid?: readonly string[];
}

export function sampler(grammar: Grammar, options: SamplerOptions = {}): (seed: number) => Sample {
  const heights = heightsOf(grammar);
  return (seed) => new Sampling(grammar, heights, seed, options).run();
}

class Sampling {
  readonly #grammar: Grammar;
  readonly #heights: ReadonlyMap<string, number>;
  readonly #distinct: ReadonlySet<string>;
  readonly #avoid: ReadonlySet<string>;
  readonly #taken = new Set<string>();
  readonly #used = new Map<string, number>();
  #state: number;

  constructor(
    grammar: Grammar,
    heights: ReadonlyMap<string, number>,
    seed: number,
    { distinct = [], avoid = [] }: SamplerOptions,
  ) {
    this.#grammar = grammar;
    this.#heights = heights;
    this.#distinct = new Set(distinct);
    this.#avoid = new Set(avoid);
    this.#state = (Math.imul(seed + 1, 2_654_435_761) ^ 0x9e3779b9) >>> 0;
  }

  run(): Sample {
    const text = this.#rule(this.#grammar.start, 0);
    return { text, used: this.#used };
  }

  #random(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    // the low bits of such a generator are poor
    return (this.#state >>> 8) / 16_777_216;
  }

  #pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.#random() * items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  #rule(name: string, depth: number): string {
    const rule = this.#grammar.rules.get(name);
    if (rule === undefined) throw new Error(`no rule is called ${name}`);
    this.#used.set(name, (this.#used.get(name) ?? 0) + 1);
    for (let tries = 0; tries < 1_000; tries += 1) {
      const text = this.#write(rule.expression, depth + 1);
      if (!this.#distinct.has(name)) return text;
      if (this.#taken.has(text)) continue;
      this.#taken.add(text);
      return text;
    }
    throw new Error(`the rule ${name} has too few sentences`);
  }

  #write(expression: Expression, depth: number): string {
    switch (expression.kind) {
      case 'text':
        return expression.text;
      case 'class':
        return String.fromCodePoint(this.#character(expression));
      case 'rule':
        return this.#rule(expression.name, depth);
      case 'sequence':
        return expression.items.map((item) => this.#write(item, depth)).join('');
      case 'choice': {
        const wanted = expression.items.filter((item) => item.kind !== 'rule' || !this.#avoid.has(item.name));
        const items = wanted.length === 0 ? expression.items : wanted;
        if (depth <= DEEP) return this.#write(this.#pick(items), depth);
        const least = Math.min(...items.map((item) => heightOf(item, this.#heights)));
        return this.#write(this.#pick(items.filter((item) => heightOf(item, this.#heights) === least)), depth);
      }
      case 'repeat': {
        const { item, min, max } = expression;
        const isDeep = depth > DEEP && heightOf(item, this.#heights) > 0;
        const most = isDeep ? min : (max ?? Infinity);
        const chance = max === 1 ? 0.4 : item.kind === 'class' ? 0.75 : 0.6;
        let written = '';
        for (let count = 0; count < min || (count < most && this.#random() < chance); count += 1) {
          written += this.#write(item, depth);
        }
        return written;
      }
    }
  }

  #character(expression: Extract<Expression, { kind: 'class' }>): number {
    const { negated, ranges } = expression;
    if (!negated) {
      const [from, to] = this.#pick(ranges);
      return from + Math.floor(this.#random() * (to - from + 1));
    }
    const isOut = (code: number): boolean => !ranges.some(([from, to]) => code >= from && code <= to);
    for (let tries = 0; tries < 100; tries += 1) {
      const telling = this.#random() < 0.5;
      const code = telling ? (this.#pick(TELLING).codePointAt(0) ?? 0) : 32 + Math.floor(this.#random() * 95);
      if (isOut(code)) return code;
    }
    throw new Error('a class that nothing passes');
  }
}

/** For each rule, how deep its shortest sentence nests. */
function heightsOf(grammar: Grammar): ReadonlyMap<string, number> {
  const heights = new Map<string, number>();
  for (let changed = true; changed;) {
    changed = false;
    for (const { name, expression } of grammar.rules.values()) {
      const height = heightOf(expression, heights) + 1;
      if (height < (heights.get(name) ?? Infinity)) {
        heights.set(name, height);
        changed = true;
      }
    }
  }
  for (const name of grammar.rules.keys()) if (!heights.has(name)) throw new Error(`the rule ${name} never ends`);
  return heights;
}

function heightOf(expression: Expression, heights: ReadonlyMap<string, number>): number {
  switch (expression.kind) {
    case 'rule':
      return heights.get(expression.name) ?? Infinity;
    case 'sequence':
      return Math.max(0, ...expression.items.map((item) => heightOf(item, heights)));
    case 'choice':
      return Math.min(...expression.items.map((item) => heightOf(item, heights)));
    case 'repeat':
      return expression.min === 0 ? 0 : heightOf(expression.item, heights);
    default:
      return 0;
  }
}
