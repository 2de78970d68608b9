/** What the policies say about one call: the strictest rule of all lists (C9). Pure. */
import { evaluatePolicyCondition } from '../../bounded/conditions/policy-condition.ts';
import type { ActionError } from '../../domain/action.ts';
import { messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { POLICY_DECISIONS } from '../../domain/policy.ts';
import type { PolicyList, PolicyRule, PolicySubject, PolicyVerdict } from '../../domain/policy.ts';
import { WorkExceeded } from '../../domain/work.ts';
import type { Pacer, WorkMeter } from '../../domain/work.ts';

/** Where a rule is: its list, and its position there, 1-based. */
type RulePlace = { -readonly [Member in 'source' | 'rule']: PolicyVerdict[Member] };

/**
 * Evaluates the rules of all lists. A rule whose condition cannot be evaluated denies.
 *
 * @param place gets the rule that is being evaluated
 * @returns the first one of the strictest rules that apply; null if none applies
 * @throws WorkExceeded past the meter's limit
 */
export function judge(
  lists: readonly PolicyList[],
  subject: PolicySubject,
  meter: WorkMeter,
  place: RulePlace = { source: 'runtime', rule: 0 },
): PolicyVerdict | null {
  let strictest: PolicyVerdict | null = null;
  for (const { source, rules } of lists) {
    for (const [index, rule] of rules.entries()) {
      Object.assign(place, { source, rule: index + 1 });
      const found = apply(rule, subject, meter);
      if (found === null || (strictest !== null && rankOf(found.decision) <= rankOf(strictest.decision))) continue;
      strictest = { ...found, source, rule: index + 1 };
      if (strictest.decision === 'deny') return strictest;
    }
  }
  return strictest;
}

/** Judges a call in turns with other expensive work. Never rejects: what cannot be judged is denied. */
export async function judgeCall(
  lists: readonly PolicyList[],
  subject: PolicySubject,
  pacer: Pacer,
  signal: AbortSignal,
): Promise<PolicyVerdict | null> {
  const place: RulePlace = { source: 'runtime', rule: 0 };
  try {
    return await pacer.run(limits.policySteps, (meter) => judge(lists, subject, meter, place), signal);
  } catch (fault) {
    const why =
      fault instanceof WorkExceeded
        ? `it needs too much work on these values (${limits.policySteps} steps are allowed for all rules): judge shorter values, or use simpler patterns`
        : messageOf(fault);
    return { decision: 'deny', ...place, message: why };
  }
}

function apply(
  { when, do: decision, message }: PolicyRule,
  subject: PolicySubject,
  meter: WorkMeter,
): Pick<PolicyVerdict, 'decision' | 'message'> | null {
  if (when === null) return { decision, message };
  const result = evaluatePolicyCondition(when, subject, meter);
  if (meter.exceeded) meter.charge();
  if (!result.ok) return { decision: 'deny', message: result.message };
  return result.value ? { decision, message } : null;
}

function rankOf(decision: PolicyVerdict['decision']): number {
  return POLICY_DECISIONS.indexOf(decision);
}

/** The error of a denied action. */
export function policyDenied(id: string, { source, rule, message }: PolicyVerdict): ActionError {
  const why = message === null ? '' : `: ${message}`;
  const text = `A policy does not allow the action "${id}" (${source}, rule ${rule})${why}`;
  return { code: 'policy_denied', message: text, retryable: false };
}
