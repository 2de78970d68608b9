/**
 * Redacts outgoing text (C9): replaces the matches of patterns that manifests and the deployment list. Secrets of the
 * environment are removed separately, and earlier (engine/session/redact.ts).
 */
import { limits } from '../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../domain/work.ts';
import { compileBounded } from './bounded-pattern.ts';
import type { BoundedPattern } from './bounded-pattern.ts';
import type { Meter } from './pattern.ts';
import { redactedTextJson, valueOfText } from './redact-text-json.ts';
import { REDACTED, RedactedStream } from './redacted-stream.ts';

/**
 * Where a text may have been cut. `value`: in front of marks such as `[cut: 9 characters]`, and at the end of a quote of the greatest
 * length. `message`: also in front of each `…`. `excerpt`: at its start, and at its end if it has the greatest length.
 */
export type TextKind = 'value' | 'message' | 'excerpt';

/** Redacts a text; `value` is the default kind. */
export type RedactText = (text: string, kind?: TextKind) => string;

/** Quotes of messages have `limits.excerptChars`, or four times as many, and `…` behind them. */
const QUOTE = `"[^"]{${limits.excerptChars - 1},${4 * limits.excerptChars + 1}}`;
const CUT_VALUE = new RegExp(
  String.raw`(?=\n?\[(?:cut: (?:\d+ characters\]|the output had)|cut after \d+ of \d+ ))|(?=…")(?<=${QUOTE})|(?=")(?<="[^"]{${limits.excerptChars}})`,
);
const CUT_MESSAGE = new RegExp(`${CUT_VALUE.source}|(?=…)`);

/** Compiled lists by their patterns: sessions of one agent share them. */
const compiled = new Map<string, readonly BoundedPattern[]>();
const COMPILED_LISTS = 32;

export class Redaction {
  /** The patterns, as they were written. */
  readonly sources: readonly string[];
  readonly #patterns: readonly BoundedPattern[];
  readonly #charge: (steps: number) => void;

  /**
   * @param sources checked when they were loaded
   * @param charge counts the work of the thread
   * @throws if one of them is not a bounded pattern
   */
  constructor(sources: readonly string[], charge: (steps: number) => void) {
    this.sources = sources;
    this.#charge = charge;
    this.#patterns = patternsOf(sources, { charge });
  }

  /**
   * Redacts several texts within one limit of work; what is left past it is hidden as a whole.
   *
   * @param allowed steps
   */
  texts(allowed: number = limits.redactSteps): RedactText {
    const meter = new WorkMeter(allowed);
    return (text, kind = 'value') => {
      const before = meter.spent;
      try {
        return this.#cut(text, this.#text(text, meter), kind, meter);
      } catch (fault) {
        if (fault instanceof WorkExceeded) return REDACTED;
        throw fault;
      } finally {
        this.#charge(meter.spent - before);
      }
    };
  }

  text(text: string): string {
    return this.texts()(text);
  }

  /** For a text that arrives in pieces. */
  stream(): RedactedStream {
    return new RedactedStream(this.#patterns, { charge: this.#charge });
  }

  /** A text that is JSON as a whole stays JSON, and escapes in its strings hide nothing. */
  #text(text: string, meter: Meter, depth = 0): string {
    const shown = this.#whole(text, meter);
    const hasEscapes = text.includes('\\');
    if ((!hasEscapes && shown === text) || depth >= limits.redactJsonDepth) return shown;
    const value = valueOfText(text);
    if (value === undefined || (!hasEscapes && valueOfText(shown) !== undefined)) return shown;
    const json = redactedTextJson(text, value, (part) => this.#text(part, meter, depth + 1));
    return json === null ? shown : this.#whole(json, meter);
  }

  /** Hides what touches a cut and may be a part of a match. */
  #cut(text: string, shown: string, kind: TextKind, meter: Meter): string {
    if (kind === 'excerpt') {
      const after = this.#afterCut(shown);
      // One less: half of a character is left out.
      return text.length < limits.excerptChars - 1 ? after : this.#beforeCut(after, meter);
    }
    const parts = shown.split(kind === 'message' ? CUT_MESSAGE : CUT_VALUE);
    if (parts.length === 1) return shown;
    const last = parts.length - 1;
    return parts.map((part, index) => (index === last ? part : this.#beforeCut(part, meter))).join('');
  }

  #afterCut(text: string): string {
    let end = 0;
    for (const { allows, most } of this.#patterns) {
      let at = 0;
      while (at < Math.min(most, text.length) && allows(text.codePointAt(at) ?? 0)) at += 1;
      end = Math.max(end, at);
    }
    return text.slice(0, end).trim() === '' ? text : REDACTED + text.slice(end);
  }

  #beforeCut(text: string, meter: Meter): string {
    const stream = new RedactedStream(this.#patterns, meter);
    const known = stream.feed(text);
    return known + stream.cut();
  }

  #whole(text: string, meter: Meter): string {
    const possible = this.#patterns.filter(
      ({ least, required }) => text.length >= least && (required === null || mayInclude(text, required)),
    );
    if (possible.length === 0) return text;
    const stream = new RedactedStream(possible, meter);
    const begin = stream.feed(text);
    return begin + stream.end();
  }
}

/** Line breaks also take the place of escapes. */
function mayInclude(text: string, required: string): boolean {
  return text.includes(required) || ('\n\r'.includes(required) && text.includes('\\'));
}

/** @returns null without patterns: nothing is redacted, at no cost */
export function redactionOf(
  lists: readonly (readonly string[] | undefined)[],
  charge: (steps: number) => void,
): Redaction | null {
  const sources = [...new Set(lists.flatMap((list) => list ?? []))];
  return sources.length === 0 ? null : new Redaction(sources, charge);
}

/** What is wrong with a list of patterns; empty if nothing is. @throws WorkExceeded */
export function redactIssues(
  sources: readonly string[],
  meter: Meter,
): { readonly at: number; readonly reason: string }[] {
  return sources.flatMap((source, at) => {
    const found = compileBounded(source, meter);
    return found.ok ? [] : [{ at, reason: found.reason }];
  });
}

function patternsOf(sources: readonly string[], meter: Meter): readonly BoundedPattern[] {
  const key = JSON.stringify(sources);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const patterns = sources.map((source) => {
    const found = compileBounded(source, meter);
    if (!found.ok) throw new Error(`The pattern "${source.slice(0, limits.excerptChars)}" ${found.reason}`);
    return found.pattern;
  });
  if (compiled.size >= COMPILED_LISTS) compiled.clear();
  compiled.set(key, patterns);
  return patterns;
}
