/** Describes an action whose body is still being written, so that a runner can prepare its sandbox (R2). */
import { actionSpec, isCapability } from '../../domain/action-types.ts';
import type { ActionType } from '../../domain/action-types.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { PrewarmHint } from '../../domain/ports/runner.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';

type Hint = Omit<PrewarmHint, 'session'>;

/** @returns null if no action is open after these events, or if it needs no sandbox */
export function prewarmHint(events: readonly ProtocolEvent[], resolved: ResolvedAgent): Hint | null {
  const last = events.findLast(
    ({ type }) => type === 'action_opened' || type === 'action_declared' || type === 'action_rejected',
  );
  return last?.type === 'action_opened' ? hintOf(last.actionType, last.name, resolved) : null;
}

/** The sandbox of the action according to its tag; null also if the agent may not use it (X4). */
function hintOf(type: ActionType | null, name: string | null, { agent, tools }: ResolvedAgent): Hint | null {
  if (type !== null && isCapability(type)) {
    // Runner requirements of an agent do not apply to containers.
    const needs = actionSpec(type).runner?.interpreter == null ? {} : agent.runner;
    return agent.capabilities.includes(type) ? { kind: type, runtime: null, ...needs } : null;
  }
  if ((type !== null && type !== 'tool') || name === null) return null;
  const implementation = tools.get(name)?.implementation;
  if (implementation?.type !== 'script') return null;
  const { runtime, sandbox, labels } = implementation;
  return {
    kind: 'tool',
    runtime,
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(labels === undefined ? {} : { labels }),
  };
}
