/** Limits and settings of a run of the original: `iteration_cap`, `runtime`, `context`, `compaction`, `memory`, `sandbox`. */
import { isJsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { FieldPath } from '../../../src/catalog/check/problem.ts';
import type { Draft } from '../draft.ts';
import { wholeOf, words } from '../values.ts';

export function understandRuntime(draft: Draft): void {
  runtime(draft);
  context(draft);
  iterationCap(draft);
  modelCalls(draft);
  memory(draft);
  environment(draft);
  for (const [name, why] of Object.entries(IGNORED)) {
    if (!draft.has([name])) continue;
    draft.lose([name], `has no effect here: ${why}`);
    draft.remove([name]);
  }
}

/** Blocks of the original without a counterpart. */
const IGNORED: Readonly<Record<string, string>> = {
  compaction: 'write memory: {max_turns, summarize_after}',
  compacting: 'write memory: {max_turns, summarize_after}',
  trim: 'write memory: {max_turns, summarize_after}',
  prompt_building: 'the prompt always describes parameters and results, and protocol.form makes it shorter',
  retry: 'failed calls of a model are repeated by the runtime (docs/models.md)',
  sandbox:
    "code and scripts run in the runner's sandbox, which has no access to files of the machine (docs/operations.md)",
  extends: 'an agent inherits nothing; copy the fields that it needs',
  config: 'write environment: {variables}',
};

/** Understands the members of a block; one note names all of them. */
class Block {
  readonly #draft: Draft;
  readonly #path: FieldPath;
  readonly #understood: string[] = [];
  readonly #ignored: string[] = [];
  /** Maps of which some members were understood. */
  readonly #partly = new Set<string>();

  constructor(draft: Draft, path: FieldPath) {
    this.#draft = draft;
    this.#path = path;
  }

  /** Uses a whole number as another field, unless that has a value. */
  limit(from: FieldPath, to: FieldPath, range: { readonly least: number; readonly most?: number }): void {
    const path = [...this.#path, ...from];
    const value = wholeOf(this.#draft.get(path));
    const name = from.join('.');
    if (value === null) return;
    const [first = ''] = from;
    if (from.length > 1) this.#partly.add(String(first));
    if (this.#draft.has(to)) this.#ignored.push(name);
    else {
      const used = Math.min(Math.max(value, range.least), range.most ?? Infinity);
      this.#understood.push(`${name} as ${to.join('.')}${used === value ? '' : ` ${used}`}`);
      this.#draft.set(to, used, path);
    }
    this.#draft.remove(path);
  }

  /** Notes what was understood, and ignores the other members. */
  end(): void {
    const rest = this.#draft.get(this.#path);
    if (isJsonObject(rest)) {
      for (const [name, value] of Object.entries(rest)) {
        // a map whose members were all understood
        if (isJsonObject(value) && Object.keys(value).length === 0) continue;
        this.#ignored.push(this.#partly.has(name) ? `the rest of ${name}` : name);
      }
    }
    const ignored = [...new Set(this.#ignored)];
    const said = [
      ...(this.#understood.length > 0 ? [`understood: ${this.#understood.join(', ')}`] : []),
      ...(ignored.length > 0 ? [`without effect here: ${words(ignored)}`] : []),
    ];
    if (said.length > 0) this.#draft[ignored.length > 0 ? 'lose' : 'note'](this.#path, said.join('; '));
    this.#draft.remove(this.#path);
  }
}

const ITERATIONS = ['loop', 'max_iterations'] as const;
const TURNS = ['memory', 'max_turns'] as const;
const SUMMARY = ['memory', 'summarize_after'] as const;
const KEPT = { least: 1, most: limits.historyTurns };

function runtime(draft: Draft): void {
  if (!isJsonObject(draft.get(['runtime']))) return;
  const block = new Block(draft, ['runtime']);
  loopLimits(block, draft);
  block.limit(['trim', 'tail', 'cap'], TURNS, KEPT);
  block.limit(['trim', 'tail', 'history_cap'], TURNS, KEPT);
  if (draft.get(['runtime', 'compaction', 'enabled']) !== false) {
    block.limit(['compaction', 'trigger', 'turns'], SUMMARY, { least: 2, most: limits.historyTurns });
  }
  block.limit(['throttling', 'stall_timeout_sec'], ['cognitive_engine', 'timeouts', 'between_tokens'], { least: 1 });
  block.limit(['timeout'], ['budgets', 'seconds'], { least: 1 });
  block.end();
}

/** Limits that are allowed under `runtime` and under `context`. */
function loopLimits(block: Block, draft: Draft): void {
  // the original has one iteration at least; here, 0 means no limit
  if (!draft.has(['loop', 'iteration_cap'])) block.limit(['max_iterations'], ITERATIONS, { least: 1 });
  block.limit(['history_cap'], TURNS, KEPT);
}

function context(draft: Draft): void {
  if (!isJsonObject(draft.get(['context']))) return;
  const block = new Block(draft, ['context']);
  loopLimits(block, draft);
  block.end();
}

/** The original has `iteration_cap` at the top level. */
function iterationCap(draft: Draft): void {
  const cap = wholeOf(draft.get(['iteration_cap']));
  if (cap === null) return;
  if (draft.has(ITERATIONS) || draft.has(['loop', 'iteration_cap'])) {
    draft.note(['iteration_cap'], 'has no effect beside loop.max_iterations');
    return draft.remove(['iteration_cap']);
  }
  const used = Math.max(1, cap);
  const how = used === cap ? '' : ` ${used}; write loop: {max_iterations: 0} for no limit`;
  draft.note(['iteration_cap'], `understood as loop.max_iterations${how}`);
  draft.set(ITERATIONS, used, ['iteration_cap']);
  draft.remove(['iteration_cap']);
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

/** `memory: {enabled, type, conversation: {max_turns, summarize_after}, …}`. */
function memory(draft: Draft): void {
  const names = ['enabled', 'type', 'conversation', 'semantic', 'persistence'].filter((name) =>
    draft.has(['memory', name]),
  );
  const [first] = names;
  if (first === undefined) return;
  for (const name of ['max_turns', 'summarize_after']) {
    if (!draft.has(['memory', name])) draft.move(['memory', 'conversation', name], ['memory', name]);
  }
  draft.lose(
    ['memory', first],
    'of memory, only conversation.max_turns and conversation.summarize_after are understood',
  );
  for (const name of names) draft.remove(['memory', name]);
}

/** Parts of `environment` that belong to the machine of the original. */
function environment(draft: Draft): void {
  const written = draft.get(['environment']);
  const names = Object.keys(isJsonObject(written) ? written : {}).filter(
    (name) => /^[A-Z][A-Z0-9_]*$/.test(name) && typeof draft.get(['environment', name]) !== 'object',
  );
  if (names.length > 0) draft.note(['environment'], `understood as environment.variables: ${names.join(', ')}`);
  for (const name of names) draft.move(['environment', name], ['environment', 'variables', name]);
  const reasons = {
    env_file: 'is never read: write environment.variables, or set secrets that begin with TOOL_ in the deployment',
    resources: 'has no effect for an agent: write resources in its tools',
    workspace: 'has no effect here',
  };
  for (const [name, why] of Object.entries(reasons)) {
    if (!draft.has(['environment', name])) continue;
    draft.lose(['environment', name], why);
    draft.remove(['environment', name]);
  }
}
