/** What policies can see of a call (C9). */
import { actionSpec } from '../../domain/action-types.ts';
import type { ActionDeclaration } from '../../domain/action.ts';
import { ASKED, askedText, isAsked } from '../../domain/call-text.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { PolicySubject } from '../../domain/policy.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { relicTarget } from '../../executors/relic.ts';
import { policyOf, toolOf } from '../actions/action-policy.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';

type JudgedAction = Parameters<typeof policyOf>[0] & Pick<ActionDeclaration, 'id' | 'mode'>;

type JudgedCall = Pick<ResolvedCall, 'parameters' | 'inputs'>;

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
  call: JudgedCall,
  about: { readonly resolved: ResolvedAgent; readonly record: SessionRecord; readonly moment: PolicyMoment },
  feed = '',
): PolicySubject {
  const { resolved, record, moment } = about;
  const implementation = toolOf(action, resolved)?.implementation;
  const { id, type, mode } = action;
  const { effects } = policyOf(action, resolved, new Map());
  const { name, parameters } = targetOf(action, call, resolved);
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

/** `type/name` of what an action calls, by which its calls are counted. */
export function judgedTarget(action: JudgedAction, resolved: ResolvedAgent): string {
  return `${action.type}/${targetOf(action, { parameters: action.parameters, inputs: {} }, resolved).name}`;
}

/** The name and the parameters as the executor understands them: other forms must not pass by a rule. */
function targetOf(
  action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>,
  { parameters, inputs }: JudgedCall,
  resolved: ResolvedAgent,
): { readonly name: string; readonly parameters: JsonObject } {
  const { type, name } = action;
  if (type === 'relic') {
    const target = relicTarget(action, resolved.relics, parameters);
    const endpoint = target.endpoint === null ? '' : `.${target.endpoint}`;
    return { name: `${target.relic}${endpoint}`, parameters: target.parameters };
  }
  if (isAsked(type)) {
    const asked = askedText(type, parameters);
    return { name, parameters: asked === undefined ? parameters : { ...parameters, [ASKED[type]]: asked } };
  }
  if (actionSpec(type).code !== null) {
    const code = parameters['code'] ?? parameters['script'];
    return { name, parameters: { ...parameters, ...(code === undefined ? {} : { code }), inputs } };
  }
  return { name, parameters };
}
