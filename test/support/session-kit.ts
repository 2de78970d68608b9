/** A session on node:sqlite with scripted models and a clock that the test advances. */
import type { ActionOutcome, ActionType } from '../../src/domain/action.ts';
import { ACTION_TYPES } from '../../src/domain/action-types.ts';
import type { MessageContent } from '../../src/domain/content.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { RelicDefinition } from '../../src/domain/manifests/relic.ts';
import type { WorkflowDefinition } from '../../src/domain/manifests/workflow.ts';
import type { CodeTools } from '../../src/domain/ports/code-tools.ts';
import type { OutboundFetch } from '../../src/domain/ports/outbound.ts';
import type { PolicyRule } from '../../src/domain/policy.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { LogEvent, LogFields } from '../../src/domain/log.ts';
import type { AgentDefinition } from '../../src/domain/manifests/agent.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../src/domain/manifests/resolved.ts';
import type { SkillDefinition } from '../../src/domain/manifests/skill.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import type { BlobStore, ObjectStore } from '../../src/domain/ports/storage.ts';
import type { ChildSessions } from '../../src/domain/ports/children.ts';
import type { ModelDelta, ModelRequest } from '../../src/domain/ports/model.ts';
import type { RunnerClient } from '../../src/domain/ports/runner.ts';
import type { SharedFeeds } from '../../src/domain/ports/shared-values.ts';
import type { UserFacts } from '../../src/domain/ports/user-facts.ts';
import { bundled } from './bundled.ts';
import { redactor } from '../../src/engine/session/redact.ts';
import type { Session } from '../../src/engine/session/session.ts';
import type { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { HostLife } from '../../src/engine/replay/recovery-queue.ts';
import type { RunResult } from '../../src/view/result.ts';
import type { SeededMessage } from '../../src/domain/seeded.ts';
import type { RunRecord, SessionRecord } from '../../src/domain/session.ts';
import type { ActionCall, ActionContext, Executor } from '../../src/executors/executor.ts';
import { createExecutors } from '../../src/executors/registry.ts';
import type { ThreadShare } from '../../src/domain/fair-queue.ts';
import type { Sampling } from '../../src/telemetry/run-trace.ts';
import { checkEvent } from './event-check.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { localSession } from '../../testing/local-session.ts';
import { openNodeSql } from './node-sql.ts';
import type { NodeSql } from './node-sql.ts';
import { SESSION_RECORD } from '../journal/journal-kit.ts';

export { settle } from '../../testing/settle.ts';

/** The model's output for each generation; a function receives the request. */
export type Script = readonly (string | ModelDelta[] | ((request: ModelRequest) => string))[];

export interface SessionKit {
  readonly session: Session;
  readonly sql: NodeSql;
  readonly clock: VirtualClock;
  readonly events: SessionEvent[];
  /** Every request to the model. */
  readonly requests: ModelRequest[];
  /** Internal errors and quarantined work of the log. */
  readonly faults: unknown[];
  /** All entries of the log. */
  readonly logged: readonly (readonly [LogEvent, LogFields])[];
  /** Everything that was passed to `hold`. */
  settled(): Promise<void>;
}

export interface KitOptions {
  readonly ephemeral?: boolean;
  readonly script?: Script;
  /** Replaces the script with a stream of its own pace. */
  readonly stream?: (request: ModelRequest) => AsyncIterable<ModelDelta>;
  readonly agent?: (agent: AgentDefinition) => AgentDefinition;
  /** What the model says about its choice. */
  readonly modelNotice?: string;
  /** The bundled agent; default: `assistant`. */
  readonly from?: string;
  /** Additional tools of the agent. */
  readonly tools?: readonly ToolDefinition[];
  /** Relics and workflows, which the agent must import. */
  readonly relics?: readonly RelicDefinition[];
  readonly workflows?: readonly WorkflowDefinition[];
  /** Skills of the agent, which must import them. */
  readonly skills?: readonly SkillDefinition[];
  readonly approvalIds?: () => string;
  /** Replaces the executor of a type. */
  readonly executors?: Partial<
    Record<ActionType, (call: ActionCall, context: ActionContext) => Promise<ActionOutcome>>
  >;
  /** Lookups of attempts that an earlier host left running. */
  readonly recover?: Partial<Record<ActionType, NonNullable<Executor['recover']>>>;
  /** Questions whose action has ended. */
  readonly withdraw?: NonNullable<Executor['withdraw']>;
  /** The bytes of the messages' files. */
  readonly blobs?: BlobStore;
  /** For large files of messages. */
  readonly objects?: ObjectStore;
  readonly clock?: VirtualClock;
  readonly runner?: RunnerClient;
  /** The code tools of a project; default: there are none. */
  readonly codeTools?: CodeTools;
  /** The session's share of the thread; default: its pauses pass at once. */
  readonly share?: ThreadShare;
  readonly children?: ChildSessions;
  /** Values of shared feeds; default: each session fetches its own. */
  readonly sharedFeeds?: SharedFeeds;
  /** Facts about users; default: there are none. */
  readonly userFacts?: UserFacts;
  /** The user of the session, and its other members. */
  readonly record?: Partial<SessionRecord>;
  /** Runs this instead of a conversation. */
  readonly workflow?: ResolvedWorkflow;
  readonly sql?: NodeSql;
  /** Its first variables; null creates no session. */
  readonly variables?: JsonObject | null;
  /** The conversation before it (C1). */
  readonly history?: readonly SeededMessage[];
  /** The bytes of its files by their SHA-256. */
  readonly historyFiles?: ReadonlyMap<string, Uint8Array>;
  readonly secrets?: readonly string[];
  /** Requests of tools. */
  readonly fetch?: OutboundFetch;
  /** Rules of the deployment. */
  readonly policies?: readonly PolicyRule[];
  /** Patterns of the deployment (C9). */
  readonly redactPatterns?: readonly string[];
  /** Which runs are traced (O1); default: none. */
  readonly sampling?: Sampling;
  /** What created the session; default: a conversation. */
  readonly kind?: SessionRecord['kind'];
  readonly expiryMs?: number;
  /** Also receives the work that keeps the host alive. */
  readonly hold?: (work: Promise<unknown>) => void;
  /** The host's description from its starter; default: its first life. */
  readonly host?: HostLife;
  readonly slots?: QuarantineSlots;
  /** Whether the session's agent has been removed from the catalog. */
  readonly gone?: () => boolean;
  /**
   * As in production: the agent is found by the pin of a run only. Default: without one too, like a bundled agent. A session
   * whose record has no patterns is then one of an earlier version.
   */
  readonly uploaded?: boolean;
  /** Pinning the manifests waits for this. */
  readonly pin?: () => Promise<void>;
}

/** A model stream that fails before its first text. */
export async function* failedStream(fault: Error): AsyncGenerator<ModelDelta> {
  yield await Promise.reject<ModelDelta>(fault);
}

export async function sessionKit(options: KitOptions = {}): Promise<SessionKit> {
  const sql = options.sql ?? openNodeSql();
  const clock = options.clock ?? new VirtualClock();
  const events: SessionEvent[] = [];
  const requests: ModelRequest[] = [];
  const faults: unknown[] = [];
  const logged: SessionKit['logged'][number][] = [];
  const held: Promise<unknown>[] = [];
  const resolved = resolvedAgent(options);
  const session = localSession(sql, {
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.slots === undefined ? {} : { slots: options.slots }),
    clock,
    ...(options.share === undefined ? {} : { share: options.share }),
    newApprovalId: options.approvalIds ?? (() => `apr_${'1'.repeat(32)}`),
    executors: executors(options),
    fetch: options.fetch ?? (async () => new Response('ok')),
    readHtml: async () => ({ title: null, text: '', matches: {}, links: [], truncated: false }),
    ...(options.runner === undefined ? {} : { runner: options.runner }),
    codeTools: options.codeTools ?? null,
    ...(options.children === undefined ? {} : { children: options.children }),
    sharedFeeds: options.sharedFeeds ?? null,
    userFacts: options.userFacts ?? null,
    pin: async () => {
      await options.pin?.();
      return options.uploaded === true && options.gone?.() !== true ? 'pinned' : null;
    },
    ...(options.policies === undefined ? {} : { policies: options.policies }),
    resolve: (_name, pin) => {
      const isGone = options.gone?.() === true;
      return (options.uploaded === true ? pin === null : isGone) ? null : resolved;
    },
    workflow: () => options.workflow ?? null,
    modelFor: () => ({
      name: 'scripted',
      ...(options.modelNotice === undefined ? {} : { notice: options.modelNotice }),
      async *stream(request): AsyncGenerator<ModelDelta> {
        const step = options.script?.[requests.length] ?? '<response final="true">out of script</response>';
        requests.push(request);
        if (options.stream !== undefined) {
          yield* options.stream(request);
          return;
        }
        if (Array.isArray(step)) {
          yield* step as ModelDelta[];
          return;
        }
        yield { type: 'text', text: typeof step === 'function' ? step(request) : String(step) };
        yield { type: 'finish', reason: 'stop' };
      },
    }),
    blobs: options.blobs ?? null,
    objects: options.objects ?? null,
    sampling: options.sampling ?? null,
    hold: (work) => {
      held.push(work);
      options.hold?.(work);
    },
    ...(options.expiryMs === undefined ? {} : { expiryMs: options.expiryMs }),
    redact: redactor(options.secrets ?? []),
    ...(options.redactPatterns === undefined ? {} : { redactPatterns: options.redactPatterns }),
    log: (event, fields) => {
      logged.push([event, fields]);
      if (event === 'work_quarantined') faults.push(fields.message);
      if (event === 'internal_error') faults.push(fields.fault);
    },
  });
  session.listen((batch) => {
    events.push(...(batch ?? []));
    for (const event of batch ?? []) checkEvent(event);
  });
  if (!session.exists && options.variables !== null) {
    await session.create(
      {
        ...SESSION_RECORD,
        ...options.record,
        ...(options.ephemeral === true ? { ephemeral: true } : {}),
        ...(options.kind === undefined ? {} : { kind: options.kind }),
        ...(options.workflow === undefined ? {} : { workflow: options.workflow.workflow.name }),
      },
      options.variables ?? {},
      { messages: options.history ?? [], files: options.historyFiles ?? new Map() },
    );
  }
  return {
    session,
    sql,
    clock,
    events,
    requests,
    faults,
    logged,
    settled: async () => void (await Promise.allSettled(held)),
  };
}

function named<T extends { readonly name: string }>(all: readonly T[]): (readonly [string, T])[] {
  return all.map((one) => [one.name, one] as const);
}

function resolvedAgent({
  agent: change,
  from = 'assistant',
  tools = [],
  relics = [],
  workflows = [],
  skills,
}: KitOptions): ResolvedAgent {
  const found = bundled.agent(from);
  if (found === null) throw new Error(`the bundled catalogue has no ${from}`);
  const own = skills === undefined ? {} : { skills: new Map(skills.map((skill) => [skill.name, skill])) };
  const resolved = {
    ...found,
    ...own,
    tools: new Map([...found.tools, ...named(tools)]),
    relics: new Map([...found.relics, ...named(relics)]),
    workflows: new Map([...found.workflows, ...named(workflows)]),
  };
  return change === undefined ? resolved : { ...resolved, agent: change(resolved.agent) };
}

function executors({
  executors: replaced = {},
  recover: known = {},
  withdraw,
}: KitOptions): Record<ActionType, Executor> {
  const real = createExecutors();
  const entries = ACTION_TYPES.map((type): [ActionType, Executor] => {
    const execute = replaced[type];
    const recover = known[type];
    if (execute === undefined) return [type, real[type]];
    return [
      type,
      { execute, ...(recover === undefined ? {} : { recover }), ...(withdraw === undefined ? {} : { withdraw }) },
    ];
  });
  return Object.fromEntries(entries) as Record<ActionType, Executor>;
}

/** Sends a message and waits for the end of its run. */
export async function say(kit: SessionKit, content: MessageContent): Promise<RunResult> {
  const run = await kit.session.message({ content, ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await kit.session.ended(run.run);
  return await resultOf(kit.session, kit.session.run(run.runId));
}

/** Runs protocol text that arrives in pieces, and waits for its end. */
export async function runText(kit: SessionKit, ...pieces: string[]): Promise<RunResult> {
  const chunks = async function* (): AsyncGenerator<string> {
    yield* pieces;
  };
  const run = await kit.session.execute(chunks(), pieces.join(''));
  await kit.session.ended(run.run);
  return await resultOf(kit.session, kit.session.run(run.runId));
}

/** A run as its document. */
export async function resultOf(session: Session, run: RunRecord): Promise<RunResult> {
  return JSON.parse(await textOf(session.read().result(run))) as RunResult;
}

export async function variablesOf(session: Session): Promise<JsonObject> {
  return (JSON.parse(await textOf(session.state())) as { variables: JsonObject }).variables;
}

/** All pieces, joined. */
export async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}
