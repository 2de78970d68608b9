/** The policies that bind a run (C9). */
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ChildSessions } from '../../domain/ports/children.ts';
import type { PolicyList, PolicyRule } from '../../domain/policy.ts';
import type { SessionRecord } from '../../domain/session.ts';

/**
 * Those of the deployment, of the runs that started this one, and of its own manifest, in this order.
 *
 * @param inherited from the parent's run; the deployment's rules are not among them
 */
export function policyLists(
  deployment: readonly PolicyRule[],
  inherited: readonly PolicyList[],
  { policies = [] }: Pick<AgentDefinition, 'policies'>,
  { agent, workflow }: Pick<SessionRecord, 'agent' | 'workflow'>,
): readonly PolicyList[] {
  const own = { source: workflow === undefined ? `agent ${agent}` : `workflow ${workflow}`, rules: policies };
  return [{ source: DEPLOYMENT, rules: deployment }, ...inherited, own].filter(({ rules }) => rules.length > 0);
}

const DEPLOYMENT = 'deployment';

/** Starts children that are bound by the policies of their parent's run. */
export function boundChildren(children: ChildSessions, lists: readonly PolicyList[]): ChildSessions {
  const policies = passedOn(lists);
  if (policies.length === 0) return children;
  return { run: async (child, observer) => await children.run({ ...child, policies }, observer) };
}

/** Each list once, at most as many as sessions can be nested. The deployment's bind every run anyway. */
function passedOn(lists: readonly PolicyList[]): readonly PolicyList[] {
  const seen = new Set<string>();
  const own = lists.filter(({ source }) => source !== DEPLOYMENT);
  return own
    .filter((list) => {
      const text = JSON.stringify(list);
      return !seen.has(text) && seen.add(text);
    })
    .slice(0, limits.policyLists);
}
