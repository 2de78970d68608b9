import { createHash } from 'node:crypto';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { REDACTED } from '../../../src/bounded/redacted-stream.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { HIDDEN } from '../world/targets.ts';
import { actionOf, factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const judgedFirst: Invariant = {
  name: 'judged first',
  holds:
    'With policies, an action starts only after one has allowed it, or after its approval; a denied action has no effect; what was judged, and what was approved, is what runs.',
  *check(seen) {
    const { policies } = seen.history.agent;
    const verdicts = new Map<string, SessionEvent & { type: 'policy_applied' }>();
    const declared = new Map<string, JsonObject>();
    const digests = new Map<string, string>();
    const approved = new Set<string>();
    for (const event of seen.events) {
      const action = actionOf(event);
      switch (event.type) {
        case 'action_queued':
          declared.set(action, event.data.parameters);
          break;
        case 'policy_applied':
          if (verdicts.has(action)) yield `${action} was judged twice`;
          verdicts.set(action, event);
          break;
        case 'approval_requested':
          if (event.data.question === undefined) digests.set(action, event.data.sha256);
          break;
        case 'approval_resolved':
          if (event.data.approved) approved.add(action);
          break;
        case 'action_started': {
          const decision = verdicts.get(action)?.data.decision;
          if (policies && decision === undefined) yield `${action} started and was not judged`;
          if (decision === 'deny') yield `${action} started and was denied`;
          if (decision === 'ask' && !approved.has(action))
            yield `${action} started without the approval that a policy wants`;
          break;
        }
        case 'client_tool_called':
          if (verdicts.get(action)?.data.decision === 'deny') yield `${action} was shown to the client and was denied`;
          break;
        default:
      }
    }
    for (const { key, id, token, attempt, parameters, isRecorded } of factsOf(seen, 'effect')) {
      const [run, iteration] = key.split('/').slice(-3);
      const action = `run ${run}, iteration ${iteration}, ${id}`;
      const verdict = verdicts.get(action);
      if (verdict?.data.decision === 'deny') yield `${token} had an effect and was denied`;
      // The event has them where they differ from the declared ones.
      const judged = verdict === undefined ? undefined : (verdict.data.parameters ?? declared.get(action));
      // The event is what leaves.
      const shown = parameters?.replaceAll(new RegExp(HIDDEN, 'g'), REDACTED);
      if (isRecorded && judged !== undefined && shown !== undefined && shown !== JSON.stringify(judged)) {
        yield `attempt ${attempt} of ${token} ran with ${parameters}, and ${JSON.stringify(judged)} was judged`;
      }
      const digest = digests.get(action);
      if (digest === undefined || parameters === null) continue;
      // The digest of a redacted request is that of what it shows.
      const ran = createHash('sha256').update(`{"parameters":${shown},"inputs":{}}`).digest('hex');
      if (ran !== digest) yield `attempt ${attempt} of ${token} ran with ${parameters}, which was not approved`;
    }
  },
};
