/** What policies can see of a call (C9). */
import type { ActionDeclaration } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { PolicySubject } from '../../domain/policy.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { relicTarget } from '../../executors/relic.ts';
import { policyOf, toolOf } from '../actions/action-policy.ts';

type JudgedAction = Parameters<typeof policyOf>[0] & Pick<ActionDeclaration, 'id' | 'mode'>;

/** The state of the run and of the session when a call is judged. */
export interface PolicyMoment {
  readonly run: PolicySubject['run'];
  /** US dollars of the session's runs. */
  readonly sessionCost: number;
  readonly now: number;
}

/** @param feed the feed that is fetched; empty for an action */
export function subjectOf(
  action: JudgedAction,
  call: { readonly parameters: JsonObject; readonly inputs: JsonObject },
  about: { readonly resolved: ResolvedAgent; readonly record: SessionRecord; readonly moment: PolicyMoment },
  feed = '',
): PolicySubject {
  const { resolved, record, moment } = about;
  const implementation = toolOf(action, resolved)?.implementation;
  const { id, type, mode } = action;
  const { effects } = policyOf(action, resolved, new Map());
  const { name, parameters } = targetOf(action, call.parameters, resolved);
  return {
    action: {
      type,
      name,
      id,
      mode,
      effects,
      implementation: implementation?.type ?? '',
      server: implementation?.type === 'mcp' ? implementation.server : '',
      feed,
    },
    parameters,
    inputs: call.inputs,
    session: {
      id: record.session_id,
      agent: record.agent,
      kind: record.workflow === undefined ? record.kind : 'workflow',
      user_id: record.user_id ?? '',
      namespace: record.owner ?? '',
      depth: record.parent?.depth ?? 0,
      metadata: record.metadata,
      cost: moment.sessionCost,
    },
    run: moment.run,
    now: moment.now,
  };
}

/** A relic's endpoint may be among the parameters, and its executor takes it from there. */
function targetOf(
  action: JudgedAction,
  parameters: JsonObject,
  { relics }: ResolvedAgent,
): { readonly name: string; readonly parameters: JsonObject } {
  if (action.type !== 'relic') return { name: action.name, parameters };
  const target = relicTarget(action, relics, parameters);
  const name = target.endpoint === null ? target.relic : `${target.relic}.${target.endpoint}`;
  return { name, parameters: target.parameters };
}
