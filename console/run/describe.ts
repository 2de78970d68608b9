/** Actions and events as words. */
import type { SessionEvent } from '../../src/client/index.ts';
import { cut, duration } from '../parts/format.ts';
import { ranMs } from './trace-types.ts';
import type { TraceAction } from './trace-types.ts';

const SUMMARY_CHARS = 240;

/** What is called: `tool web_fetch`, or `python` if the name says no more than the type. */
export function targetOf({ written: { type }, name }: Pick<TraceAction, 'written' | 'name'>): string {
  return [type, name === type ? null : name].filter(Boolean).join(' ') || 'action';
}

/** `fetch1, tool web_fetch, completed, 320 ms`: the accessible name. */
export function describeAction(action: TraceAction, now: number, isCritical = false): string {
  const ms = ranMs(action, now);
  const attempts = action.attempts.length;
  return [
    action.id,
    targetOf(action),
    action.status,
    ms !== null && duration(ms),
    action.isCached && 'cached',
    attempts > 1 && `${attempts} attempts`,
    isCritical && 'on the critical path',
  ]
    .filter(Boolean)
    .join(', ');
}

/** `1.24 s` as a position: `+1.240 s`. */
export function offset(ms: number): string {
  return `+${(ms / 1_000).toFixed(3)} s`;
}

/** Times are whole milliseconds: a ratio of shorter ones says nothing. */
export const LEAST_RATIO_MS = 50;

/** `+0.9 %`, or null if there is nothing to compare with. */
export function overhead(actualMs: number, boundMs: number): string | null {
  if (boundMs < LEAST_RATIO_MS) return null;
  const percent = (actualMs / boundMs - 1) * 100;
  return `${percent < 0 ? '' : '+'}${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** What an event says, without its type and action, in one line: its message or text, or else its data as JSON. */
export function summaryOf({ data }: SessionEvent): string {
  const error = 'error' in data && typeof data.error === 'object' ? data.error : null;
  const { code, message, content, response }: Partial<Record<string, unknown>> = { ...data, ...error };
  const text = message ?? content ?? response;
  // Long texts are cut before they are joined: an output may have megabytes.
  const line =
    typeof text === 'string'
      ? [code, cut(text, SUMMARY_CHARS)].filter(Boolean).join(': ')
      : JSON.stringify(data, (_, member: unknown) =>
          typeof member === 'string'
            ? cut(member, SUMMARY_CHARS)
            : Array.isArray(member)
              ? member.slice(0, 40)
              : member,
        );
  return cut(line.replaceAll(/\s+|^\{\}$/g, ' ').trim(), SUMMARY_CHARS);
}
