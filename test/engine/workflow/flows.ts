/** Runs workflows, written as in a manifest, to their ends. */
import { expect } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { ResolvedWorkflow } from '../../../src/domain/manifests/resolved.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { ActionCall, ActionContext } from '../../../src/executors/executor.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { bundled } from '../../support/bundled.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import { resultOf, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

/** `work` and `sure`, which a person must approve. */
const TOOLS = ['work', 'sure'].map((name) => ({
  path: `${name}.yaml`,
  text: `kind: Tool\nversion: "1"\nname: ${name}\nsummary: Works\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {type: object, additionalProperties: true}\neffects: pure\nretry: 1\n${name === 'sure' ? 'approval: always\n' : ''}`,
}));
const INNER =
  'kind: Workflow\nversion: "1"\nname: inner\nsummary: Works\nsteps: [{ name: x, type: tool, target: work }]\n';

/** A workflow from its steps, outputs and settings. */
export function load(yaml: string): ResolvedWorkflow {
  const text = `kind: Workflow\nversion: "1"\nname: flow\nsummary: Flows\n${yaml}`;
  const files = [...TOOLS, { path: 'inner.yaml', text: INNER }, { path: 'flow.yaml', text }];
  const { catalog, problems, warnings } = loadManifests(files, { bundled });
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  const found = catalog.workflow('flow');
  if (found === null) throw new Error('the workflow did not load');
  return found;
}

/** Executes the tools after `ms` (default 10): returns `give` or the parameters; `fail` fails. */
export class Shop {
  /** Ids of the steps in the order of their starts, and the most that ran at the same time. */
  readonly started: string[] = [];
  most = 0;
  #working = 0;
  readonly clock: VirtualClock;

  constructor(clock = new VirtualClock()) {
    this.clock = clock;
  }

  work = async (call: ActionCall, context: ActionContext): Promise<ActionOutcome> => {
    const { action, parameters } = call;
    if (action.name !== 'work' && action.name !== 'sure') return await toolExecutor.execute(call, context);
    this.started.push(action.id);
    this.#working += 1;
    this.most = Math.max(this.most, this.#working);
    await new Promise<void>((resolve) => void this.clock.schedule(Number(parameters['ms'] ?? 10), resolve));
    this.#working -= 1;
    if (parameters['fail'] === true) {
      return { ok: false, error: { code: 'broken', message: 'it broke', retryable: false } };
    }
    return { ok: true, output: parameters['give'] ?? parameters };
  };

  async kit(workflow: ResolvedWorkflow, options: KitOptions = {}): Promise<SessionKit> {
    return await sessionKit({ clock: this.clock, workflow, executors: { tool: this.work }, ...options });
  }
}

const DAY_MS = 24 * 3_600_000;

/** Advances the clock until the workflow has ended or waits for a person. */
export async function finish(kit: SessionKit): Promise<RunResult> {
  const { session, clock } = kit;
  for (let turn = 0; turn < 400; turn += 1) {
    await settle();
    const [run] = session.runs();
    const isWaiting = run?.status === 'waiting' && !session.busy;
    if (run !== undefined && (isWaiting || session.hasEnded(run.runId))) return await resultOf(session, run);
    const { next } = clock;
    if (next !== null && next - clock.now() < DAY_MS) clock.advance(next - clock.now());
  }
  throw new Error(`the workflow does not end: ${JSON.stringify(session.runs())}`);
}

interface Done {
  readonly result: RunResult;
  readonly status: string;
  readonly outputs: Json;
  readonly error: string | undefined;
  readonly started: readonly string[];
  readonly most: number;
}

export async function run(yaml: string, inputs: JsonObject = {}): Promise<Done> {
  const shop = new Shop();
  const kit = await shop.kit(load(yaml));
  await kit.session.workflow(inputs);
  const result = await finish(kit);
  expect(kit.faults).toEqual([]);
  const { status, outputs = null, error } = result;
  return { result, status, outputs, error: error?.message, started: shop.started, most: shop.most };
}

export const approve = (kit: SessionKit, approved = true): Promise<void> =>
  kit.session.resolveApproval(`apr_${'1'.repeat(32)}`, approved, null);

/**
 * Runs a workflow repeatedly: once for every append at which its host can be lost, each time to its end on the next
 * host with the same disk. All its approvals are given.
 */
export async function atEveryAppend(yaml: string, check: (result: RunResult) => void): Promise<void> {
  const workflow = load(yaml);
  const through = async (kit: SessionKit): Promise<RunResult> => {
    for (;;) {
      const result = await finish(kit);
      if (result.status !== 'waiting') return result;
      await approve(kit);
    }
  };
  for (let atAppend = 1; ; atAppend += 1) {
    const clock = new VirtualClock();
    const disk = openNodeSql();
    const first = new CrashingSql(disk, { atAppend, leaves: 'unsynced' });
    const begun = (async () => {
      const kit = await new Shop(clock).kit(workflow, { sql: first });
      await kit.session.workflow({});
      return await through(kit);
    })().catch(() => null);
    const gone = (async () => {
      while (!first.crashed) await new Promise((resolve) => setImmediate(resolve));
      return null;
    })();
    const isWhole = (await Promise.race([begun, gone])) !== null;
    if (isWhole) {
      expect(atAppend).toBeGreaterThan(20);
      return;
    }
    const kit = await new Shop(clock).kit(workflow, { sql: new CrashingSql(disk, null) });
    await kit.session.recover();
    if (kit.session.runs().length === 0) await kit.session.workflow({});
    const result = await through(kit);
    expect(result, `crash at append ${atAppend}`).toMatchObject({ status: 'completed' });
    check(result);
  }
}
