/**
 * Runs one task in this process: the real engine, parser, scheduler, prompt and journal, with an in-memory database. Only the
 * tools of the tasks are not real.
 */
import type { ActionType } from '../../../src/domain/action-types.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { Clock, Random } from '../../../src/domain/ports/clock.ts';
import type { ModelProvider } from '../../../src/domain/ports/model.ts';
import type { RunResult } from '../../../src/view/result.ts';
import type { Executor } from '../../../src/executors/executor.ts';
import { createExecutors } from '../../../src/executors/registry.ts';
import { localSession } from '../../../testing/local-session.ts';
import { openNodeSql } from '../../../testing/node-sql.ts';
import { documentOf } from '../../../testing/test-run.ts';
import type { Task, ToolSpec } from '../tasks/dataset.ts';
import { GenerationRecorder } from './recorder.ts';
import type { ModelFailure, RecordedGeneration } from './recorder.ts';
import { TaskTools } from '../tasks/tools.ts';

const SESSION_ID = `ses_${'0'.repeat(31)}1`;

/** One run of a task. */
export interface TaskRun {
  readonly document: RunResult;
  /** The events of its journal, in order. */
  readonly events: readonly SessionEvent[];
  readonly generations: readonly RecordedGeneration[];
  /** Why its last generation could not be made; null if it could. */
  readonly modelFailure: ModelFailure | null;
}

export interface RunPorts {
  readonly clock: Clock;
  readonly random: Random;
  /** The model for an agent's own generations. */
  readonly model: (resolved: ResolvedAgent) => ModelProvider;
}

/** @throws Error for a fault of the runtime, as opposed to a mistake of the model */
export async function runTask(
  task: Task,
  resolved: ResolvedAgent,
  tools: ReadonlyMap<string, ToolSpec>,
  { clock, random, model }: RunPorts,
): Promise<TaskRun> {
  const recorder = new GenerationRecorder(model(resolved));
  const faults: unknown[] = [];
  const session = localSession(openNodeSql(), {
    clock,
    random,
    executors: executorsWith(new TaskTools(tools)),
    resolve: () => resolved,
    modelFor: () => recorder,
    log: (event, fields) => {
      if (event === 'internal_error') faults.push(fields.fault);
    },
  });
  const events: SessionEvent[] = [];
  session.listen((batch) => void events.push(...(batch ?? []).filter(({ seq }) => seq !== null && seq !== undefined)));
  const record = {
    session_id: SESSION_ID,
    agent: resolved.agent.name,
    user_id: null,
    owner: null,
    kind: 'chat' as const,
    metadata: {},
    created_at: clock.now(),
  };
  await session.create(record, {}, { messages: [], files: new Map() });
  const run = await session.message({ content: task.message, ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await session.ended(run.run);
  const [fault] = faults;
  if (fault !== undefined) throw fault;
  const { generations, failure: modelFailure } = recorder;
  return { document: await documentOf(session, session.run(run.runId)), events, generations, modelFailure };
}

function executorsWith(tools: TaskTools): Record<ActionType, Executor> {
  const real = createExecutors();
  return {
    ...real,
    tool: {
      execute: async (call, context) =>
        tools.has(call.action.name)
          ? tools.call(call.action.name, call.parameters)
          : await real.tool.execute(call, context),
    },
  };
}
