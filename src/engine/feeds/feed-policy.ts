/** What the policies say about the fetch of a feed (C9). */
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import { judgeCall } from '../policy/judge.ts';
import { subjectOf } from '../policy/subject.ts';
import type { PolicyMoment } from '../policy/subject.ts';
import { actionOf, withAction } from './feed-call.ts';
import type { FeedPorts } from './feed-ports.ts';

/**
 * Why the policies do not allow the fetch; null if they do. A feed cannot ask a person, so it is denied instead (C9).
 *
 * @param redirect where a request of the fetch would be redirected to
 */
export async function policyRefusal(
  feed: FeedDefinition,
  ports: FeedPorts,
  signal: AbortSignal,
  redirect: string | null = null,
): Promise<string | null> {
  const { policies = [], resolved, record, pacer } = ports;
  if (policies.length === 0) return null;
  const tool = feed.source.type === 'tool' ? (resolved.tools.get(feed.source.name) ?? null) : null;
  const action = actionOf({ id: feed.id, source: withAction(feed.source, tool) });
  const parameters = redirect === null ? action.parameters : { ...action.parameters, url: redirect };
  const about = { resolved, record, moment: momentOf(ports) };
  const subject = subjectOf(action, { parameters, inputs: {} }, about, feed.id);
  const verdict = await judgeCall(policies, subject, pacer, signal);
  if (verdict === null || verdict.decision === 'allow') return null;
  const why = verdict.message === null ? '' : `: ${verdict.message}`;
  const rule = `(${verdict.source}, rule ${verdict.rule})`;
  return verdict.decision === 'deny'
    ? `A policy does not allow this feed ${rule}${why}`
    : `A policy wants a person to be asked, which a feed cannot do ${rule}${why}`;
}

function momentOf({ clock, journal, runNumber = 0, moment }: FeedPorts): PolicyMoment {
  const cost = typeof moment?.usage['cost'] === 'number' ? moment.usage['cost'] : 0;
  const tokens = Number(moment?.usage['prompt_tokens'] ?? 0) + Number(moment?.usage['completion_tokens'] ?? 0);
  const run = {
    iteration: moment?.iteration ?? 0,
    actions: 0,
    calls: 0,
    model_calls: Number(moment?.usage['model_calls'] ?? 0),
    tokens,
    cost,
    seconds: 0,
  };
  return { run, sessionCost: journal.runs.costWithout(runNumber) + cost, now: clock.now() };
}
