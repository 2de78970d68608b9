/** Limits and settings of a run of the original: `iteration_cap`, `runtime`, `context`, `compaction`, `memory`, `sandbox`. */
import { isJsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Draft } from '../draft.ts';
import { wholeOf, words } from '../values.ts';

const ITERATIONS = ['loop', 'max_iterations'] as const;
const MOST_TURNS = limits.historyTurns;

/** Whole numbers, in order of precedence, with what they are here, and their least and greatest value. */
const LIMITS: readonly (readonly [from: string, to: string, least: number, most?: number])[] = [
  // the original has one iteration at least; here, 0 means no limit
  ['runtime.max_iterations', 'loop.max_iterations', 1],
  ['context.max_iterations', 'loop.max_iterations', 1],
  ['iteration_cap', 'loop.max_iterations', 1],
  ['runtime.history_cap', 'memory.max_turns', 1, MOST_TURNS],
  ['runtime.trim.tail.cap', 'memory.max_turns', 1, MOST_TURNS],
  ['runtime.trim.tail.history_cap', 'memory.max_turns', 1, MOST_TURNS],
  ['context.history_cap', 'memory.max_turns', 1, MOST_TURNS],
  ['memory.conversation.max_turns', 'memory.max_turns', 1, MOST_TURNS],
  ['runtime.compaction.trigger.turns', 'memory.summarize_after', 2, MOST_TURNS],
  ['memory.conversation.summarize_after', 'memory.summarize_after', 2, MOST_TURNS],
  ['runtime.throttling.stall_timeout_sec', 'cognitive_engine.timeouts.between_tokens', 1],
  ['runtime.timeout', 'budgets.seconds', 1],
];

const MEMORY = 'write memory: {max_turns, summarize_after}';
/** What has no counterpart, with the reason; the other members of a block have none. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  runtime: '',
  context: '',
  'memory.enabled': '',
  'memory.type': '',
  'memory.conversation': '',
  'memory.semantic': '',
  'memory.persistence': '',
  compaction: MEMORY,
  compacting: MEMORY,
  trim: MEMORY,
  prompt_building: 'the prompt always describes parameters and results, and protocol.form makes it shorter',
  retry: 'failed calls of a model are repeated by the runtime (docs/models.md)',
  sandbox: "code and scripts run in the runner's sandbox, which has no access to files of the machine (docs/runner.md)",
  extends: 'an agent inherits nothing; copy the fields that it needs',
  config: 'write environment: {variables}',
  'environment.env_file':
    'it is never read: write environment.variables, or set secrets that begin with TOOL_ in the deployment',
  'environment.resources': 'write resources in the tools of the agent',
  'environment.workspace': '',
};

export function understandRuntime(draft: Draft): void {
  if (draft.get(['runtime', 'compaction', 'enabled']) === false) draft.remove(['runtime', 'compaction']);
  for (const limit of LIMITS) useLimit(draft, ...limit);
  modelCalls(draft);
  variables(draft);
  for (const [name, why] of Object.entries(WITHOUT_EFFECT)) {
    const path = name.split('.');
    const value = draft.get(path);
    if (value === undefined) continue;
    // a block whose members were all understood is empty
    const members = Object.keys(isJsonObject(value) ? value : {});
    const rest = why === '' && members.length > 0 ? `: ${words(members)}` : why === '' ? '' : `: ${why}`;
    if (!isJsonObject(value) || members.length > 0) draft.lose(path, `without effect here${rest}`);
    draft.remove(path);
  }
}

function useLimit(draft: Draft, from: string, to: string, least: number, most = Infinity): void {
  const path = from.split('.');
  const target = to.split('.');
  const value = wholeOf(draft.get(path));
  if (value === null) return;
  const isSet = draft.has(target) || (to === 'loop.max_iterations' && draft.has(['loop', 'iteration_cap']));
  if (isSet) draft.lose(path, `has no effect beside ${to}`);
  else {
    const used = Math.min(Math.max(value, least), most);
    draft.note(path, `understood as ${to}${used === value ? '' : ` ${used}`}`);
    draft.set(target, used, path);
  }
  removeWithin(draft, path);
}

/** Removes a member, and the maps that are then empty. */
function removeWithin(draft: Draft, path: readonly string[]): void {
  draft.remove(path);
  const owner = path.slice(0, -1);
  const left = draft.get(owner);
  if (owner.length > 0 && isJsonObject(left) && Object.keys(left).length === 0) removeWithin(draft, owner);
}

/** A number of iterations above the default number of model calls, which would end the run before. */
function modelCalls(draft: Draft): void {
  const iterations = draft.get(ITERATIONS);
  const isForeign = JSON.stringify(draft.original(ITERATIONS)) !== JSON.stringify(ITERATIONS);
  if (!isForeign || typeof iterations !== 'number' || iterations < limits.modelCallsPerRun) return;
  if (draft.has(['budgets', 'model_calls'])) return;
  draft.note(ITERATIONS, `also understood as budgets.model_calls ${iterations + 1}: the default ends a run before`);
  draft.set(['budgets', 'model_calls'], iterations + 1, ITERATIONS);
}

/** `environment: {NAME: value}`. */
function variables(draft: Draft): void {
  const written = draft.get(['environment']);
  const names = Object.keys(isJsonObject(written) ? written : {}).filter(
    (name) => /^[A-Z][A-Z0-9_]*$/.test(name) && typeof draft.get(['environment', name]) !== 'object',
  );
  if (names.length > 0) draft.note(['environment'], `understood as environment.variables: ${names.join(', ')}`);
  for (const name of names) draft.move(['environment', name], ['environment', 'variables', name]);
}
