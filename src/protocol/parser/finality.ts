/** The `final` attribute of a `<response>` (P10). */
import type { Finality } from '../../domain/protocol-event.ts';
import { readBoolean, snakeCase } from './action/field-values.ts';
import type { TagHead } from './tag-head.ts';

export interface ReadFinality {
  readonly final: Finality;
  /** Names of unknown attributes. */
  readonly unknown: readonly string[];
  /** The value, if it is invalid. */
  readonly invalid: string | null;
  /** `non_terminating` as written, if it decides. */
  readonly nonTerminating: string | null;
}

/** `final`; without it, `non_terminating` of Cortex-MK1, which is its opposite. */
export function readFinality(head: TagHead): ReadFinality {
  let final: string | null = null;
  let nonTerminating: string | null = null;
  const unknown: string[] = [];
  head.attributes((name, value) => {
    const key = snakeCase(name);
    if (key === 'final') final = value;
    else if (key === 'non_terminating') nonTerminating = value;
    else unknown.push(name);
  });
  const given = final === null && nonTerminating !== null ? readBoolean(nonTerminating) : null;
  if (given !== null) return { final: !given, unknown, invalid: null, nonTerminating };
  if (nonTerminating !== null) unknown.push('non_terminating');
  const read = final === null ? null : finalityOf(final);
  return { final: read ?? null, unknown, invalid: read === undefined ? final : null, nonTerminating: null };
}

/** @returns undefined if the value is invalid */
function finalityOf(value: string): Finality | undefined {
  const text = value.trim().toLowerCase();
  return text === 'auto' ? null : text === 'final' ? true : (readBoolean(text) ?? undefined);
}
