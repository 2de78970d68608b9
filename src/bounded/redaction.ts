/**
 * Redacts outgoing text (C9): replaces the matches of patterns that manifests and the deployment list. Secrets of the
 * environment are removed separately, and earlier (engine/session/redact.ts).
 */
import { limits } from '../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../domain/work.ts';
import { compileBounded } from './bounded-pattern.ts';
import type { BoundedPattern } from './bounded-pattern.ts';
import type { Meter } from './pattern.ts';
import { REDACTED, RedactedStream } from './redacted-stream.ts';

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
  texts(allowed: number = limits.redactSteps): (text: string) => string {
    const meter = new WorkMeter(allowed);
    return (text) => {
      const before = meter.spent;
      try {
        return this.#whole(text, meter);
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

  #whole(text: string, meter: Meter): string {
    const possible = this.#patterns.filter(
      ({ least, required }) => text.length >= least && (required === null || text.includes(required)),
    );
    if (possible.length === 0) return text;
    const stream = new RedactedStream(possible, meter);
    const begin = stream.feed(text);
    return begin + stream.end();
  }
}

/** @returns null if there are no patterns: then nothing is redacted, at no cost */
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
