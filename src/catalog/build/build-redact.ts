/** Checks the patterns of `redact` in a manifest (C9). */
import { redactIssues } from '../../bounded/redaction.ts';
import { WorkExceeded } from '../../domain/work.ts';
import type { BuildContext } from './build-base.ts';

export function toRedact(
  written: readonly string[] | undefined,
  { addIssue, work }: Pick<BuildContext, 'addIssue' | 'work'>,
): { readonly redact?: readonly string[] } {
  if (written === undefined || written.length === 0) return {};
  try {
    for (const { at, reason } of redactIssues(written, work)) addIssue(['redact', at], `"${written[at]}" ${reason}`);
  } catch (fault) {
    if (!(fault instanceof WorkExceeded)) throw fault;
    addIssue(['redact'], `the patterns of the manifest are too large in total (allowed: ${work.allowed} steps)`);
  }
  return { redact: [...new Set(written)] };
}
