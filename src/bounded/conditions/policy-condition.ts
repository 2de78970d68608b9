/**
 * Conditions of policies: CEL over the members of a `PolicySubject` (C9). In addition to the language of conditions there
 * are `text(value)`, `host(url)` and `text.matches(pattern)`, whose patterns are matched in linear time.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { PolicySubject } from '../../domain/policy.ts';
import { WorkMeter } from '../../domain/work.ts';
import { partToCel } from './condition-work.ts';
import type { Use } from './condition-work.ts';
import { baseEnvironment, COMMON, evaluate, readExpression, TYPES } from './expression.ts';
import type { ConditionResult, Dialect, ReadExpression } from './expression.ts';
import { MATCHES, patternIssue, registerPolicyFunctions, RUNNING, withMeter } from './policy-functions.ts';

const POLICY: Dialect = {
  ...COMMON,
  environment: registerPolicyFunctions(baseEnvironment()),
  // The model gets these messages, and it is not told the rules.
  isDiscreet: true,
  isStrict: true,
  inspect: issueOf,
};

/** The members of each name; null: they depend on the call. */
const MEMBERS: { readonly [Name in keyof PolicySubject]: readonly string[] | null } = {
  action: [
    'type',
    'name',
    'id',
    'mode',
    'effects',
    'implementation',
    'server',
    'feed',
  ] satisfies readonly (keyof PolicySubject['action'])[],
  parameters: null,
  inputs: null,
  session: [
    'id',
    'agent',
    'kind',
    'user_id',
    'namespace',
    'depth',
    'metadata',
    'cost',
  ] satisfies readonly (keyof PolicySubject['session'])[],
  run: [
    'iteration',
    'actions',
    'calls',
    'model_calls',
    'tokens',
    'cost',
    'seconds',
  ] satisfies readonly (keyof PolicySubject['run'])[],
  now: [],
};
const NAMES: ReadonlySet<string> = new Set(Object.keys(MEMBERS));

/** Why no policy can have this condition; null if one can. */
export function policyConditionIssue(expression: string): string | null {
  const read = readExpression(expression, POLICY);
  return read.ok ? read.typeIssue() : read.message;
}

/** @returns an issue for an error, and for a result that is neither true nor false */
export function evaluatePolicyCondition(
  expression: string,
  subject: PolicySubject,
  meter: WorkMeter = new WorkMeter(limits.policySteps),
): ConditionResult {
  const valueOf = (name: string, use: Use): unknown => celValue(subject, name as keyof PolicySubject, use, meter);
  return withMeter(meter, () => evaluate(expression, readOnce(expression), valueOf, meter, POLICY));
}

/** Expressions of manifests and settings; the oldest are dropped. */
const readExpressions = new Map<string, ReadExpression>();
/** Reading an expression costs about 50 microseconds and 0.3 for each character. */
const READ_STEPS = 1_000;
const READ_CHAR_STEPS = 6;

function readOnce(expression: string): ReadExpression {
  const known = readExpressions.get(expression);
  if (known !== undefined) return known;
  RUNNING.charge(READ_STEPS + READ_CHAR_STEPS * expression.length);
  const read = readExpression(expression, POLICY, RUNNING);
  for (const [oldest] of readExpressions) {
    if (readExpressions.size < limits.policyExpressions) break;
    readExpressions.delete(oldest);
  }
  readExpressions.set(expression, read);
  return read;
}

function celValue(subject: PolicySubject, name: keyof PolicySubject, use: Use, meter: WorkMeter): unknown {
  if (!NAMES.has(name)) return undefined;
  if (name === 'now') return new Date(subject.now);
  return partToCel(subject[name] as JsonObject, use, meter);
}

/** Unknown names and members, and patterns that cannot be matched: they would fail at every action. */
function issueOf(node: ASTNode, isBound: (name: string) => boolean): string | null {
  switch (node.op) {
    case 'id':
      return isBound(node.args) || NAMES.has(node.args) || TYPES.has(node.args)
        ? null
        : `unknown name "${node.args.slice(0, limits.excerptChars)}"${hint(node.args, [...NAMES])}`;
    case '.': {
      const [owner, member] = node.args;
      return owner.op === 'id' && !isBound(owner.args) ? memberIssue(owner.args, member) : null;
    }
    case 'rcall': {
      const [name, , parameters] = node.args;
      if (name === MATCHES) return `unknown function "${MATCHES}"`;
      if (name !== 'matches') return null;
      // The library's own function may take exponential time. It is looked up after this inspection.
      node.args[0] = MATCHES;
      const [pattern] = parameters;
      if (parameters.length !== 1 || pattern?.op !== 'value' || typeof pattern.args !== 'string') {
        return 'matches() needs one pattern, as text in quotes';
      }
      const issue = patternIssue(pattern.args);
      return issue === null ? null : `the pattern "${pattern.args.slice(0, limits.excerptChars)}" ${issue}`;
    }
    default:
      return null;
  }
}

function memberIssue(owner: string, member: string): string | null {
  const members = Object.hasOwn(MEMBERS, owner) ? MEMBERS[owner as keyof PolicySubject] : null;
  if (members === null || members.includes(member)) return null;
  return `"${owner}" has no member "${member.slice(0, limits.excerptChars)}"${hint(member, members)}`;
}

function hint(name: string, known: readonly string[]): string {
  const near = nearestNames(name, known);
  return near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : ` (known: ${known.join(', ') || 'none'})`;
}
