/** Sets up a run of the session: its agent, the source of its text, and its policy. */
import { readContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { ChildBudget } from '../../domain/ports/children.ts';
import { policyListsOf } from '../../domain/policy.ts';
import type { PolicyList } from '../../domain/policy.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import { readTraceparent } from '../../domain/trace.ts';
import type { RunPolicy } from '../../scheduler/types.ts';
import { runTrace } from '../../telemetry/run-trace.ts';
import type { RunTrace } from '../../telemetry/run-trace.ts';
import { readConversation } from '../generation/conversation.ts';
import { earlierTurns } from '../memory/earlier-turns.ts';
import { policyLists } from '../policy/policy-lists.ts';
import { withFacts } from '../feeds/memory-feed.ts';
import type { RunSource } from '../run/run-context.ts';
import { rerunOf } from './rerun.ts';
import { agentOfWorkflow } from '../workflow/workflow-agent.ts';
import { withPassedTools } from './passed-tools.ts';
import { resolveAgentVariables } from './resolve-agent-variables.ts';
import type { SessionPorts } from './session-ports.ts';

type Ports = Pick<SessionPorts, 'journal' | 'resolve' | 'workflow' | 'blobs'>;
type DefinitionPorts = Omit<Ports, 'blobs'>;

/** The session's record. @throws EngineError `unknown_session` if there is none */
export function recordOf({ journal }: Pick<SessionPorts, 'journal'>): SessionRecord {
  const { record } = journal;
  if (record === null) throw unknownSession();
  return record;
}

/**
 * @param chunks arriving text; null if there is none, or if a crash has lost it
 * @throws EngineError `unknown_workflow`
 */
export function sourceOf(
  ports: Ports,
  { run, parent, input }: RunRecord,
  chunks: AsyncIterable<string> | null,
): RunSource {
  const { content, text, tokens, type } = input;
  const rerun = rerunOf(input);
  if (rerun !== null) return { type: 'text', chunks: restOf(rerun.text), text: rerun.text, rerun };
  if (type === 'workflow') {
    const { workflow } = requireWorkflow(ports, input);
    const { inputs, trigger } = input;
    return {
      type,
      definition: workflow,
      inputs: isJsonObject(inputs) ? inputs : {},
      trigger: trigger === 'schedule' || trigger === 'webhook' ? trigger : null,
    };
  }
  const message = readContent(content);
  if (message !== null) {
    const history = readConversation(ports.journal, parent, ports.blobs);
    const earlier = earlierTurns(ports.journal, run, history.length);
    return { type: 'model', content: message, tokens: tokens === true, history, earlier };
  }
  const whole = typeof text === 'string' ? text : null;
  return { type: 'text', chunks: chunks ?? restOf(whole), text: whole };
}

/** The type of a run's source, and its posted text; the conversation before is not read. */
export function textOf({ input }: RunRecord): { readonly type: RunSource['type']; readonly text: string } {
  const { type, content, text } = input;
  const posted = rerunOf(input)?.text ?? text;
  if (type === 'workflow') return { type, text: '' };
  return { type: readContent(content) === null ? 'text' : 'model', text: typeof posted === 'string' ? posted : '' };
}

/**
 * The agent of a run, with the session's variables resolved; null if it is no longer in the catalogue.
 *
 * @throws EngineError `unknown_workflow`
 */
export function agentOfRun(ports: Ports, { input }: RunRecord): ResolvedAgent | null {
  const record = recordOf(ports);
  const resolved =
    record.workflow === undefined
      ? ports.resolve(record.agent, pinOf(input))
      : agentOfWorkflow(requireWorkflow(ports, input));
  if (resolved === null) return null;
  const { tools, instructions } = input;
  const own = withPassedTools(withFacts(resolveAgentVariables(resolved, record), record), tools);
  return typeof instructions === 'string' ? { ...own, instructions } : own;
}

/** The session's agent in its latest run; null for a workflow, and if it is no longer in the catalogue. */
export function currentAgent(ports: Ports): ResolvedAgent | null {
  const record = recordOf(ports);
  if (record.workflow !== undefined) return null;
  const resolved = ports.resolve(record.agent, pinOf(ports.journal.runs.list(1)[0]?.input ?? {}));
  return resolved === null ? null : withFacts(resolved, record);
}

/**
 * The patterns that bind the session since a run (C9): those of the run's definition, else those that were known before.
 *
 * @param input of the run; empty before the first run
 * @returns null if they are unknown: the definition cannot be read, and no patterns are stored
 */
export function definedPatterns(ports: DefinitionPorts, input: RunRecord['input']): readonly string[] | null {
  const { patterns } = input;
  const { redact } = recordOf(ports);
  if (pinOf(input) === null) {
    if (patterns === null) return null;
    if (Array.isArray(patterns)) return patterns.filter((one) => typeof one === 'string');
    if (redact !== undefined) return redact;
  }
  const definition = definitionOf(ports, input);
  return definition === null ? null : (definition.redact ?? []);
}

/**
 * The input of a new run with the patterns that the session has until now, if the run has no definition: its agent or
 * workflow is no longer in the catalogue.
 */
export function withKnownPatterns(ports: DefinitionPorts, input: RunRecord['input']): RunRecord['input'] {
  if (pinOf(input) !== null) return input;
  try {
    if (definitionOf(ports, input) !== null) return input;
    const known = definedPatterns(ports, ports.journal.runs.list(1)[0]?.input ?? {});
    return { ...input, patterns: known === null ? null : [...known] };
  } catch {
    // The run reports it when it begins; reading the session fails as well.
    return input;
  }
}

function definitionOf(ports: DefinitionPorts, input: RunRecord['input']): Pick<AgentDefinition, 'redact'> | null {
  const { agent, workflow } = recordOf(ports);
  const pin = pinOf(input);
  if (workflow === undefined) return ports.resolve(agent, pin)?.agent ?? null;
  return ports.workflow(workflow, pin)?.workflow ?? null;
}

/** The pinned manifests that may be read again: those of open runs, and of the latest run. */
export function pinsInUse({ runs }: Ports['journal']): string[] {
  return [...runs.open(), ...runs.list(1)].flatMap(({ input }) => pinOf(input) ?? []);
}

function requireWorkflow(ports: Ports, input: RunRecord['input']): ResolvedWorkflow {
  const { workflow = '' } = recordOf(ports);
  const found = ports.workflow(workflow, pinOf(input));
  if (found !== null) return found;
  throw new EngineError('unknown_workflow', `No workflow is called "${workflow.slice(0, limits.excerptChars)}"`);
}

/** The id of a run's pinned manifests. */
function pinOf({ manifests }: RunRecord['input']): string | null {
  return typeof manifests === 'string' ? manifests : null;
}

/** The policies that bind a run with this agent and stored input (C9). */
export function policiesOfRun(
  ports: Pick<SessionPorts, 'journal' | 'policies'>,
  agent: AgentDefinition,
  input: RunRecord['input'],
): readonly PolicyList[] {
  const inherited = policyListsOf(boundInput(ports, input)['policies']);
  return policyLists(ports.policies ?? [], inherited, agent, recordOf(ports));
}

/** The input with the lists of policies that bind a child: those of its first run, in every run (C9). */
export function boundInput({ journal }: Pick<SessionPorts, 'journal'>, input: RunRecord['input']): RunRecord['input'] {
  return journal.record?.kind === 'child' ? (journal.runs.get(1)?.input ?? input) : input;
}

/** The agent's limits, restricted by the budget that a parent has reserved for the run (S12). */
export function runPolicy(agent: AgentDefinition, source: RunSource['type'], input: RunRecord['input']): RunPolicy {
  const given = input['budget'] as ChildBudget | null | undefined;
  const least = (own: number | null, most: number | null | undefined): number | null =>
    own === null || most == null ? (own ?? most ?? null) : Math.min(own, most);
  const { budgets, loop, protocol } = agent;
  return {
    source: source === 'model' ? 'model' : 'text',
    maxParallelActions: loop.maxParallelActions,
    maxParallelByType: loop.maxParallelByType,
    maxIterations: loop.maxIterations,
    maxActions: Math.min(budgets.actions, given?.actions ?? Infinity),
    seconds: Math.min(budgets.seconds, given?.seconds ?? Infinity),
    modelCalls: Math.min(budgets.modelCalls, given?.modelCalls ?? Infinity),
    tokens: least(budgets.tokens, given?.tokens),
    cost: least(budgets.cost, given?.cost),
    maxChildren: given?.children ?? limits.childrenPerRun,
    failFast: loop.failFast,
    responseDefault: protocol.responseDefault,
    onFailedFinal: protocol.onFailedFinal,
  };
}

/** The trace of a run: that of its caller, if it has sent one (O1). */
export function traceOfRun({ sampling = null }: Pick<SessionPorts, 'sampling'>, run: RunRecord): RunTrace | null {
  const { trace } = run.input;
  return runTrace(run.runId, readTraceparent(typeof trace === 'string' ? trace : null), sampling);
}

/** The text of a recovered run: complete if it was posted at once, otherwise the client's stream is lost. */
async function* restOf(whole: string | null): AsyncGenerator<string> {
  if (whole === null) {
    throw new Error('The session was restarted while the text was still arriving');
  }
  yield whole;
}
