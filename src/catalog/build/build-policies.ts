/** Builds policies from their written form, and checks their conditions (C9). */
import { policyConditionIssue } from '../../bounded/conditions/policy-condition.ts';
import type { PolicyRule } from '../../domain/policy.ts';
import type { BuildContext } from './build-base.ts';
import { check } from '../check/issues.ts';
import { fieldName } from '../check/problem.ts';
import type { FieldPath } from '../check/problem.ts';
import { readYaml } from '../read/yaml-file.ts';
import { policies } from '../schema/schema-policy.ts';
import type { PoliciesInput } from '../schema/schema-policy.ts';
import * as z from 'zod';

const FIELD = 'policies';

/** The member of an agent's or workflow's definition; none without policies. */
export function policiesOf(
  { policies: written = [] }: { readonly policies?: PoliciesInput | undefined },
  context: Pick<BuildContext, 'addIssue'>,
): { readonly policies?: readonly PolicyRule[] } {
  if (written.length === 0) return {};
  return { policies: toPolicies(written, (path, message) => context.addIssue(path, message)) };
}

/** @param addIssue called for each condition that no run could evaluate */
function toPolicies(rules: PoliciesInput, addIssue: (path: FieldPath, message: string) => void): readonly PolicyRule[] {
  return rules.map(({ when, do: decision, message }, index) => {
    const issue = when === undefined ? null : policyConditionIssue(when);
    if (issue !== null) addIssue([FIELD, index, 'when'], issue);
    return { when: when ?? null, do: decision, message: message ?? null };
  });
}

const document = z.strictObject({ [FIELD]: policies });

/**
 * Reads the policies of a deployment.
 *
 * @param text a list in YAML or JSON; empty: none
 * @returns the rules, or the first issue
 */
export function readPolicies(
  text: string,
): { readonly ok: true; readonly rules: readonly PolicyRule[] } | { readonly ok: false; readonly issue: string } {
  if (text.trim() === '') return { ok: true, rules: [] };
  // All YAML documents of the system are maps.
  const { documents, errors } = readYaml(`${FIELD}:\n${text.replaceAll(/^/gm, ' ')}`);
  const [written] = documents;
  const [flaw] = errors;
  if (flaw !== undefined || written === undefined || documents.length > 1) {
    return { ok: false, issue: flaw === undefined ? 'must be one list' : flaw.message };
  }
  if (written.value[FIELD] === null) return { ok: false, issue: 'has no rules; remove it, or write []' };
  const checked = check(document, written.value);
  const issues: string[] = checked.errors.map(({ path, message }) => `${fieldName(path)} ${message}`);
  const rules = toPolicies(checked.value?.[FIELD] ?? [], (path, message) =>
    issues.push(`${fieldName(path)}: ${message}`),
  );
  const [issue] = issues;
  return issue === undefined ? { ok: true, rules } : { ok: false, issue };
}
