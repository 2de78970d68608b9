/** The setting `POLICIES`: rules for the whole deployment (C9). */
import { readPolicies } from '../catalog/build/build-policies.ts';
import { EngineError } from '../domain/errors.ts';
import type { PolicyRule } from '../domain/policy.ts';

/** The latest value: a Worker reads its settings with every request. */
let latest: { readonly text: string; readonly rules: readonly PolicyRule[] } = { text: '', rules: [] };

/** @throws EngineError `internal`, so that a system with wrong policies does not start without them */
export function parsePolicies(text = ''): readonly PolicyRule[] {
  if (text === latest.text) return latest.rules;
  const read = readPolicies(text);
  if (!read.ok) throw new EngineError('internal', `POLICIES: ${read.issue}`);
  latest = { text, rules: read.rules };
  return read.rules;
}
