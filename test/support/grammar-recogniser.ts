/**
 * Whether a text is a sentence of a grammar, and if not, how far it could be one: an Earley recogniser.
 *
 * Without lexemes (GBNF) its symbols are characters. With lexemes (Lark) they are lexemes, found as a
 * decoding engine finds them: all that the grammar allows here run side by side, each as far as it
 * can, and nothing is taken back. So a grammar passes only if every lexeme ends where the longest
 * match ends.
 */
import type { Expression } from '../../src/protocol/grammar/model.ts';
import type { Grammar } from './grammar-reader.ts';

/** @returns null when the text is a sentence, else the offset of the first character that cannot stand where it does */
export type Recogniser = (text: string) => number | null;

export function recogniser(grammar: Grammar): Recogniser {
  const compiled = new Compiled(grammar);
  return (text) =>
    recognise(
      compiled,
      Array.from(text, (character) => character.codePointAt(0) ?? 0),
    );
}

/** A terminal is a number below zero (`-1 - index` into the terminals), a nonterminal its index. */
type Symbol = number;

/** Productions of nonterminals; repetitions are unrolled, endless ones left-recursive. */
class Compiled {
  readonly productions: Symbol[][][] = [];
  readonly nullable = new Set<number>();
  readonly terminals: Automaton[] = [];
  readonly start: number;
  readonly #grammar: Grammar;
  readonly #byName = new Map<string, Symbol>();
  readonly #byShape = new Map<string, Symbol>();
  readonly #hasLexemes: boolean;

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.#hasLexemes = [...grammar.rules.values()].some(({ lexeme }) => lexeme);
    this.start = this.#nonterminal([[this.#rule(grammar.start)]]);
    for (let changed = true; changed;) {
      changed = false;
      for (const [index, alternatives] of this.productions.entries()) {
        if (this.nullable.has(index)) continue;
        if (alternatives.some((symbols) => symbols.every((symbol) => symbol >= 0 && this.nullable.has(symbol)))) {
          this.nullable.add(index);
          changed = true;
        }
      }
    }
  }

  #nonterminal(alternatives: Symbol[][]): number {
    return this.productions.push(alternatives) - 1;
  }

  #terminal(expression: Expression): Symbol {
    return -this.terminals.push(new Automaton(expression, this.#grammar));
  }

  #rule(name: string): Symbol {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const rule = this.#grammar.rules.get(name);
    if (rule === undefined) throw new Error(`no rule is called ${name}`);
    if (rule.lexeme) {
      const symbol = this.#terminal(rule.expression);
      this.#byName.set(name, symbol);
      return symbol;
    }
    const symbol = this.#nonterminal([]);
    this.#byName.set(name, symbol);
    this.productions[symbol]?.push(...this.#alternatives(rule.expression));
    return symbol;
  }

  #alternatives(expression: Expression): Symbol[][] {
    if (expression.kind === 'choice') return expression.items.map((item) => this.#symbols(item));
    return [this.#symbols(expression)];
  }

  #symbols(expression: Expression): Symbol[] {
    if (expression.kind === 'sequence') return expression.items.flatMap((item) => this.#symbols(item));
    if (expression.kind === 'text' && !this.#hasLexemes) {
      return Array.from(expression.text, (character): Symbol => {
        const code = character.codePointAt(0) ?? 0;
        return this.#symbol({ kind: 'class', negated: false, ranges: [[code, code]] });
      });
    }
    return [this.#symbol(expression)];
  }

  #symbol(expression: Expression): Symbol {
    if (expression.kind === 'rule') return this.#rule(expression.name);
    const shape = JSON.stringify(expression);
    const known = this.#byShape.get(shape);
    if (known !== undefined) return known;
    const symbol = this.#newSymbol(expression);
    this.#byShape.set(shape, symbol);
    return symbol;
  }

  #newSymbol(expression: Expression): Symbol {
    switch (expression.kind) {
      case 'class':
        return this.#terminal(expression);
      case 'text':
        return this.#hasLexemes ? this.#terminal(expression) : this.#nonterminal([this.#symbols(expression)]);
      case 'repeat': {
        const item = this.#symbol(expression.item);
        const { min, max } = expression;
        const least = Array.from({ length: min }, () => item);
        if (max === null) {
          const more = this.#nonterminal([[]]);
          this.productions[more]?.push([more, item]);
          return this.#nonterminal([[...least, more]]);
        }
        let rest = this.#nonterminal([[]]);
        for (let left = min; left < max; left += 1) rest = this.#nonterminal([[], [item, rest]]);
        return this.#nonterminal([[...least, rest]]);
      }
      case 'sequence':
        return this.#nonterminal([this.#symbols(expression)]);
      case 'choice':
        return this.#nonterminal(this.#alternatives(expression));
      case 'rule':
        return this.#rule(expression.name);
    }
  }
}

/** A regular expression as a machine whose states are made when they are first reached. */
class Automaton {
  readonly #edges: { readonly test: (code: number) => boolean; readonly to: number }[][] = [];
  readonly #free: number[][] = [];
  readonly #accept: number;
  readonly #states: {
    readonly nodes: readonly number[];
    readonly accepts: boolean;
    readonly next: Map<number, number>;
  }[] = [];
  readonly #known = new Map<string, number>();
  readonly start: number;

  constructor(expression: Expression, grammar: Grammar) {
    const first = this.#node();
    this.#accept = this.#build(expression, first, grammar);
    this.start = this.#state([first]);
  }

  /** @returns the next state, or -1 when nothing can follow */
  step(state: number, code: number): number {
    const { nodes = [], next } = this.#states[state] ?? {};
    const known = next?.get(code);
    if (known !== undefined) return known;
    const reached = nodes.flatMap((node) =>
      (this.#edges[node] ?? []).filter((edge) => edge.test(code)).map((edge) => edge.to),
    );
    const to = reached.length === 0 ? -1 : this.#state(reached);
    next?.set(code, to);
    return to;
  }

  accepts(state: number): boolean {
    return this.#states[state]?.accepts ?? false;
  }

  #state(from: readonly number[]): number {
    const all = new Set(from);
    for (const node of all) for (const free of this.#free[node] ?? []) all.add(free);
    const nodes = [...all].sort((a, b) => a - b);
    const key = nodes.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const index = this.#states.push({ nodes, accepts: all.has(this.#accept), next: new Map() }) - 1;
    this.#known.set(key, index);
    return index;
  }

  #node(): number {
    this.#free.push([]);
    return this.#edges.push([]) - 1;
  }

  #build(expression: Expression, from: number, grammar: Grammar): number {
    switch (expression.kind) {
      case 'text': {
        let at = from;
        for (const character of expression.text) {
          const code = character.codePointAt(0);
          const to = this.#node();
          this.#edges[at]?.push({ test: (other) => other === code, to });
          at = to;
        }
        return at;
      }
      case 'class': {
        const { negated, ranges } = expression;
        const to = this.#node();
        const test = (code: number): boolean => negated !== ranges.some(([low, high]) => code >= low && code <= high);
        this.#edges[from]?.push({ test, to });
        return to;
      }
      case 'sequence':
        return expression.items.reduce((at, item) => this.#build(item, at, grammar), from);
      case 'choice': {
        const end = this.#node();
        for (const item of expression.items) {
          const start = this.#node();
          this.#free[from]?.push(start);
          this.#free[this.#build(item, start, grammar)]?.push(end);
        }
        return end;
      }
      case 'repeat': {
        const { item, min, max } = expression;
        let at = from;
        for (let count = 0; count < min; count += 1) at = this.#build(item, at, grammar);
        const end = this.#node();
        if (max === null) {
          const loop = this.#node();
          this.#free[at]?.push(loop);
          this.#free[this.#build(item, loop, grammar)]?.push(loop);
          this.#free[loop]?.push(end);
          return end;
        }
        for (let count = min; count < max; count += 1) {
          this.#free[at]?.push(end);
          at = this.#build(item, at, grammar);
        }
        this.#free[at]?.push(end);
        return end;
      }
      case 'rule': {
        const rule = grammar.rules.get(expression.name);
        if (rule === undefined) throw new Error(`no rule is called ${expression.name}`);
        return this.#build(rule.expression, from, grammar);
      }
    }
  }
}

interface Item {
  readonly nonterminal: number;
  readonly alternative: number;
  readonly dot: number;
  /** The column in which it began. */
  readonly origin: number;
}

/** The items at one place of the text, by the symbol that they wait for. */
class Column {
  readonly items: Item[] = [];
  readonly waiting = new Map<Symbol, Item[]>();
  readonly #seen = new Set<string>();

  add(item: Item, compiled: Compiled): void {
    const key = `${item.nonterminal},${item.alternative},${item.dot},${item.origin}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.items.push(item);
    const symbol = compiled.productions[item.nonterminal]?.[item.alternative]?.[item.dot];
    if (symbol === undefined) return;
    const others = this.waiting.get(symbol);
    if (others === undefined) this.waiting.set(symbol, [item]);
    else others.push(item);
  }
}

function recognise(compiled: Compiled, text: readonly number[]): number | null {
  const columns = new Map<number, Column>();
  let at = 0;
  let column = new Column();
  columns.set(0, column);
  column.add({ nonterminal: compiled.start, alternative: 0, dot: 0, origin: 0 }, compiled);
  for (;;) {
    close(column, at, columns, compiled);
    if (at === text.length) {
      const done = column.items.some(
        ({ nonterminal, dot, origin }) => nonterminal === compiled.start && dot === 1 && origin === 0,
      );
      return done ? null : at;
    }
    const terminals = [...column.waiting.keys()].filter((symbol) => symbol < 0);
    const { end, found, reached } = longest(compiled, terminals, text, at);
    if (found.length === 0) return reached;
    const next = new Column();
    for (const symbol of found) {
      for (const item of column.waiting.get(symbol) ?? []) next.add({ ...item, dot: item.dot + 1 }, compiled);
    }
    columns.set(end, next);
    column = next;
    at = end;
  }
}

/** Predicts and completes until nothing is new. */
function close(column: Column, at: number, columns: ReadonlyMap<number, Column>, compiled: Compiled): void {
  for (const item of column.items) {
    const symbol = compiled.productions[item.nonterminal]?.[item.alternative]?.[item.dot];
    if (symbol === undefined) {
      for (const other of columns.get(item.origin)?.waiting.get(item.nonterminal) ?? []) {
        column.add({ ...other, dot: other.dot + 1 }, compiled);
      }
    } else if (symbol >= 0) {
      const count = compiled.productions[symbol]?.length ?? 0;
      for (let alternative = 0; alternative < count; alternative += 1) {
        column.add({ nonterminal: symbol, alternative, dot: 0, origin: at }, compiled);
      }
      if (compiled.nullable.has(symbol)) column.add({ ...item, dot: item.dot + 1 }, compiled);
    }
  }
}

/** Runs all terminals side by side; those count that are complete where the last of them stops. */
function longest(
  compiled: Compiled,
  terminals: readonly Symbol[],
  text: readonly number[],
  from: number,
): { end: number; found: readonly Symbol[]; reached: number } {
  let alive = terminals.map((symbol) => {
    const automaton = compiled.terminals[-1 - symbol];
    if (automaton === undefined) throw new Error('no such terminal');
    return { symbol, automaton, state: automaton.start };
  });
  let end = from;
  while (end < text.length) {
    const code = text[end] ?? 0;
    const next = alive
      .map(({ symbol, automaton, state }) => ({ symbol, automaton, state: automaton.step(state, code) }))
      .filter(({ state }) => state !== -1);
    if (next.length === 0) break;
    alive = next;
    end += 1;
  }
  const found =
    end === from ? [] : alive.filter(({ automaton, state }) => automaton.accepts(state)).map(({ symbol }) => symbol);
  return { end, found, reached: end };
}
