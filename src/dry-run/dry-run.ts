/** `POST /plan`: dry-runs protocol text (H6, S13). */
import type { ActionDeclaration } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { DEFAULT_PROTOCOL } from '../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import type { Finality } from '../domain/protocol-event.ts';
import { createParser } from '../protocol/parser/parser.ts';
import { planStatically } from '../scheduler/plan.ts';
import { renderPlan } from '../scheduler/render-plan.ts';
import type { PlanEntry } from '../scheduler/plan.ts';
import { planJson } from '../engine/generation/plan-json.ts';
import { policyOf, targetNote } from '../engine/actions/action-policy.ts';
import { knownTargets } from '../engine/actions/known-targets.ts';

/** @param resolved the agent whose tools and permissions apply; null means that names are not looked up */
export function planText(text: string, resolved: ResolvedAgent | null): JsonObject {
  const read = readText(text, resolved);
  const entries: PlanEntry[] = [];
  const warnings = [...read.warnings];
  for (const entry of read.entries) {
    if ('rejection' in entry) {
      entries.push(entry);
      continue;
    }
    const { refusal, ...policy } = policyOf(entry.action, resolved, new Map());
    if (refusal !== null && resolved !== null) {
      warnings.push({ code: refusal.code, message: `Action "${entry.action.id}": ${refusal.message}` });
    }
    const note = resolved === null ? null : targetNote(entry.action, resolved);
    if (note !== null) warnings.push({ code: 'foreign_form', message: note });
    entries.push({ action: entry.action, policy: { ...policy, refusal: null } });
  }
  const plan = planStatically(entries);
  // By ordinal: a rejected action may have the same id.
  const declared = new Map(
    read.entries.flatMap((entry) => ('action' in entry ? [[entry.action.ordinal, entry.action] as const] : [])),
  );
  const options =
    resolved === null ? {} : { agent: resolved.agent.name, maxParallel: resolved.agent.loop.maxParallelActions };
  return {
    actions: plan.report.actions.flatMap(({ ordinal, dependsOn, estimateMs }) => {
      const action = declared.get(ordinal ?? -1);
      return action === undefined ? [] : [actionJson(action, dependsOn, estimateMs)];
    }),
    rejected: plan.rejected.map((rejection) => ({ ...rejection })),
    warnings: [...warnings, ...plan.warnings].map(({ code, message }) => ({ code, message })),
    thoughts: read.thoughts,
    responses: read.responses.map((response) => ({ ...response })),
    text: read.text.join('\n\n'),
    ...planJson(plan.report),
    report: renderPlan(plan.report, options),
  };
}

function actionJson(action: ActionDeclaration, dependsOn: readonly string[], estimateMs: number): Json {
  return {
    id: action.id,
    type: action.type,
    mode: action.mode,
    name: action.name,
    parameters: action.parameters,
    depends_on: [...dependsOn],
    output_key: action.outputKey,
    embedded_in_thought: action.embeddedInThought,
    repaired: action.repaired,
    estimate_ms: estimateMs,
  };
}

interface ReadText {
  readonly entries: ({ readonly action: ActionDeclaration } | Extract<PlanEntry, { rejection: unknown }>)[];
  readonly warnings: { code: string; message: string }[];
  readonly thoughts: string[];
  readonly responses: { content: string; final: Finality }[];
  readonly text: string[];
}

/** Parses the whole text; references in responses stay unsubstituted. */
function readText(text: string, resolved: ResolvedAgent | null): ReadText {
  const options = resolved?.agent.protocol ?? DEFAULT_PROTOCOL;
  const targets = resolved === null ? null : knownTargets(resolved);
  const parser = createParser({ json: options.json, actInReasoning: options.actInReasoning, targets });
  const read: ReadText = { entries: [], warnings: [], thoughts: [], responses: [], text: [] };
  let open = '';
  let final: Finality = null;
  for (const event of [...parser.feed(text), ...parser.end()]) {
    switch (event.type) {
      case 'thought_started':
      case 'text_started':
        open = '';
        break;
      case 'response_started':
        open = '';
        final = event.final;
        break;
      case 'thought':
      case 'text':
      case 'response':
        open += event.delta;
        break;
      case 'response_reference':
        open += event.reference.raw;
        break;
      case 'thought_completed':
        read.thoughts.push(open);
        break;
      case 'text_completed':
        read.text.push(open);
        break;
      case 'response_completed':
        read.responses.push({ content: open, final });
        break;
      case 'action_declared':
        read.entries.push({ action: event.action });
        break;
      case 'action_rejected':
        read.entries.push({ rejection: event.rejection });
        break;
      case 'warning':
        read.warnings.push({ code: event.code, message: event.message });
        break;
      case 'action_opened':
        break;
    }
  }
  return read;
}
