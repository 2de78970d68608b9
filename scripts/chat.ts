/**
 * `npm run chat [-- agent | session] [--key <key>]`: chats in the terminal with the system at PORT, shows actions as they
 * run, and asks for approvals, also for those that an existing session already waits for. `/attach <path>` sends a file
 * with the next message. The key can also be in CORTEX_API_KEY.
 */
import { createInterface } from 'node:readline/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { Attachments } from './terminal/attachments.ts';
import { connectionOf, request } from './terminal/connection.ts';
import type { Connection } from './terminal/connection.ts';
import { readEvents } from './terminal/event-client.ts';
import { RUN_END_EVENTS } from '../src/domain/event.ts';
import type { EventOf, SessionEvent, TextPatch } from '../src/domain/event.ts';
import type { JsonObject } from '../src/domain/json.ts';
import type { OpenApproval } from '../src/engine/actions/approval-list.ts';
import { boxed, harmless, visible } from './terminal/visible.ts';

const USAGE = 'npm run chat -- [agent | session id] [--key <key>]';

function readArguments(): { readonly agent: string; readonly connection: Connection } {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { key: { type: 'string' } } });
    const [agent = 'assistant', ...others] = positionals;
    if (others.length > 0)
      throw new Error(`expected an agent's name or a session's id, got ${positionals.length} arguments`);
    return { agent, connection: connectionOf(process.env, values.key) };
  } catch (fault) {
    console.error(`${fault instanceof Error ? fault.message : String(fault)}\nusage: ${USAGE}`);
    process.exit(2);
  }
}

const { agent, connection } = readArguments();

/** Longer calls are not printed to the terminal. */
const PRINTED_BYTES = 65_536;

/** The start of a command that asks the system. The key is not printed. */
const CURL = connection.key === null ? 'curl' : 'curl -H "authorization: Bearer $CORTEX_API_KEY"';

/** @param body absent for a GET */
async function call(path: string, body?: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return await request(
    connection,
    path,
    body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
  );
}

/** The block type of a closing event. */
const CLOSES: Readonly<Partial<Record<SessionEvent['type'], TextPatch['type']>>> = {
  thought_completed: 'thought',
  text_completed: 'text',
  response_completed: 'response',
};

/** Prints blocks while they grow: writes only the part of a patch that is new. */
class Screen {
  /** The block at the end of the output. */
  #segment = -1;
  /** Length of the printed text of each block. */
  readonly #printed = new Map<number, number>();

  show(event: SessionEvent): void {
    if (event.type === 'thought' || event.type === 'response' || event.type === 'text') {
      return this.#print(event.type, event.data);
    }
    const closed = CLOSES[event.type];
    // A block that was read from the journal has no patches: its text is in the closing event.
    if (closed !== undefined && 'content' in event.data) {
      return this.#print(closed, { segment: event.data.segment, offset: 0, delta: event.data.content });
    }
    const line = this.#line(event);
    if (line === null) return;
    this.#newLine();
    console.log(line);
  }

  end(): void {
    this.#newLine();
  }

  #print(type: TextPatch['type'], { segment, offset, delta }: TextPatch['data']): void {
    const printed = this.#printed.get(segment) ?? 0;
    const fresh = delta.slice(Math.max(0, printed - offset));
    if (fresh === '') return;
    if (segment !== this.#segment) this.#newLine();
    this.#segment = segment;
    this.#printed.set(segment, printed + fresh.length);
    process.stdout.write(type === 'thought' ? pc.dim(harmless(fresh)) : harmless(fresh));
  }

  #newLine(): void {
    if (this.#segment !== -1) process.stdout.write('\n');
    this.#segment = -1;
  }

  #line(event: SessionEvent): string | null {
    const { action_id: id, action_name: name } = event;
    const label = visible(name === undefined || name === id ? String(id) : `${id} (${name})`);
    switch (event.type) {
      case 'action_started':
        return pc.yellow(`  ▶ ${label}`);
      case 'action_completed':
        return `${pc.green(`  ✓ ${label}`)} ${pc.dim(`${event.data.ms} ms`)}`;
      case 'action_failed':
        return pc.red(`  ✗ ${label}: ${told(event.data.error)}`);
      case 'action_rejected':
        return pc.red(`  ✗ ${label}: ${told(event.data)}`);
      case 'action_skipped':
      case 'action_cancelled':
        return pc.dim(`  – ${label}: ${event.type.slice(7)} (${visible(event.data.reason)})`);
      case 'agent_failed':
        return pc.red(`The run failed: ${told(event.data.error)}`);
      default:
        return null;
    }
  }
}

function told({ code, message }: { readonly code: string; readonly message: string }): string {
  return visible(`${code}: ${message}`);
}

/** Unwraps `progress` events to the innermost event, of a sub-agent or workflow. */
function innermost(event: SessionEvent): SessionEvent {
  const inner = event.type === 'progress' ? (event.data.event as SessionEvent | undefined) : undefined;
  return inner === undefined ? event : innermost(inner);
}

/** Asks for a line of input; null at the end of the input. */
type Question = (text: string) => Promise<string | null>;

/** What is shown of a request for approval. `parameters` is absent or null if the call is long. */
interface Asked {
  readonly path: string;
  readonly label: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly parameters?: JsonObject | null;
  readonly inputs?: JsonObject | null;
}

interface AskedCall {
  readonly session_id: string;
  readonly action_id: string;
  readonly type: string;
  readonly name?: string | undefined;
}

const pathOf = (session: string, approval: string): string => `/agent/session/${session}/approvals/${approval}`;

function labelOf({ action_id: id, type, name }: AskedCall): string {
  const what = [type, ...(name === undefined || name === type ? [] : [name])].join(' ');
  return visible(`${id} (${what})`);
}

function askedBy(event: EventOf<'approval_requested'>): Asked {
  const { data, session_id, action_id, action_name: name } = event;
  const label = labelOf({ session_id, action_id, type: data.type, name });
  return { ...data, path: pathOf(session_id, data.approval_id), label };
}

function askedIn(open: OpenApproval): Asked {
  return {
    ...open,
    path: pathOf(open.session_id, open.approval_id),
    label: labelOf({ ...open, name: open.name ?? undefined }),
  };
}

/** Shows the call of an action, asks for approval, and sends the decision. @returns whether there was an answer */
async function ask(asked: Asked, question: Question): Promise<boolean> {
  const { path, label, bytes, sha256 } = asked;
  // 0 if the terminal's size is unknown
  const columns = process.stdout.columns || 80;
  console.log(pc.yellow(`  ? ${label} waits for your approval`));
  const isHere = asked.parameters !== undefined && asked.parameters !== null;
  if (isHere || bytes <= PRINTED_BYTES) {
    const { parameters, inputs } = isHere ? asked : ((await (await call(path)).json()) as Asked);
    console.log(boxed(parameters, columns));
    if (Object.keys(inputs ?? {}).length > 0) console.log(`  inputs\n${boxed(inputs, columns)}`);
  } else console.log(`    too long to show; read it before you decide: ${CURL} ${connection.url}${path}`);
  console.log(pc.dim(`    ${bytes} bytes, sha256 ${sha256}`));
  const said = await question('  approve? [y/N] ');
  if (said === null) {
    console.log(`    decide with: ${CURL} ${connection.url}${path} -d '{"decision": "approve"}'`);
    return false;
  }
  const isApproved = /^y(es)?$/i.test(said.trim());
  const note = isApproved ? '' : ((await question('  reason (optional) ')) ?? '').trim();
  const body = { decision: isApproved ? 'approve' : 'deny', ...(note === '' ? {} : { note }) };
  // Another client may have decided meanwhile; its decision counts.
  await call(path, body).catch((fault: unknown) => {
    console.log(pc.red(`  ${fault instanceof Error ? fault.message : String(fault)}`));
  });
  return true;
}

/** Paths of the requests that were already asked. */
const known = new Set<string>();

/** A block of text that waits for an action and does not grow for this time does not delay a question. */
const QUIET_MS = 500;

/** Whether the text of a generation is complete, so that a question does not interrupt it. */
class Writing {
  #isGenerating = false;
  readonly #open = new Set<number>();
  #changedAt = 0;

  take({ type, data, seq }: SessionEvent): void {
    // `usage` ends each model call
    if (type === 'iteration_started') this.#isGenerating = true;
    else if (type === 'usage' || type === 'iteration_completed') this.#isGenerating = false;
    else if (type in CLOSES) this.#open.delete((data as { segment: number }).segment);
    else if (type === 'response_started' || type === 'thought_started' || type === 'text_started') this.#open.add(seq);
    else if (type !== 'response' && type !== 'thought' && type !== 'text') return;
    this.#changedAt = Date.now();
  }

  /** Milliseconds until a question may be asked; null: after another event. */
  get waitMs(): number | null {
    if (this.#isGenerating) return null;
    return this.#open.size === 0 ? 0 : Math.max(0, this.#changedAt + QUIET_MS - Date.now());
  }
}

/** Shows a run to its end and asks for approvals. Stops where the run waits for a request that got no answer. */
async function follow(answer: Response, question: Question): Promise<void> {
  let unanswered = false;
  const screen = new Screen();
  /** Requests that are not asked yet, because the model is still writing. */
  let waiting: Asked[] = [];
  const writing = new Writing();
  const askAll = async (): Promise<void> => {
    screen.end();
    for (const asked of waiting) if (!(await ask(asked, question))) unanswered = true;
    waiting = [];
  };
  /** @returns the event at which the stream ended or was left */
  const show = async (stream: Response): Promise<SessionEvent | null> => {
    let last: SessionEvent | null = null;
    const events = readEvents(stream)[Symbol.asyncIterator]();
    let next: ReturnType<typeof events.next> | null = null;
    for (;;) {
      next ??= events.next();
      const waitMs = waiting.length === 0 ? null : writing.waitMs;
      const got = waitMs === null ? await next : await Promise.race([next, delay(waitMs, null)]);
      if (got === null) {
        await askAll();
        continue;
      }
      next = null;
      if (got.done === true) break;
      const event = got.value;
      if (event.seq !== null) last = event;
      const inner = innermost(event);
      if (inner.type === 'approval_requested') {
        const asked = askedBy(inner);
        if (!known.has(asked.path)) waiting.push(asked);
        known.add(asked.path);
      } else screen.show(event);
      if (inner.type === 'approval_resolved') {
        const path = pathOf(inner.session_id, inner.data.approval_id);
        waiting = waiting.filter((asked) => asked.path !== path);
      }
      if (RUN_END_EVENTS.has(event.type)) waiting = [];
      writing.take(event);
      if (event.type === 'agent_waiting') await askAll();
      if (RUN_END_EVENTS.has(event.type) || (event.type === 'agent_waiting' && unanswered)) break;
    }
    await events.return(undefined);
    // The stream may have ended without an event that says so.
    await askAll();
    return last;
  };
  const last = await show(answer);
  // The stream of a message ends when its run waits; that of its events continues to the end of the run.
  if (last?.type !== 'agent_waiting' || unanswered) return;
  await show(await call(`/agent/session/${last.session_id}/events?after=${last.seq}&run=${last.run_id}`));
}

/** Asks for everything that an existing session waits for, then shows the rest of its current run. */
async function join(session: string, question: Question): Promise<void> {
  const path = `/agent/session/${session}`;
  const read = async <T>(route: string): Promise<T> => (await (await call(`${path}${route}`)).json()) as T;
  const { last_seq: seq, agent: name, status } = await read<{ last_seq: number; agent: string; status: string }>('');
  console.log(pc.dim(`session ${session} with ${name} (${status}); end with an empty line or Ctrl-D`));
  for (let next: string | null = ''; next !== null;) {
    const page: { approvals: OpenApproval[]; next: string | null } = await read(
      `/approvals${next === '' ? '' : `?after=${next}`}`,
    );
    for (const open of page.approvals) {
      const asked = askedIn(open);
      known.add(asked.path);
      if (!(await ask(asked, question))) return;
    }
    next = page.next;
  }
  if (status === 'idle') return;
  const { runs } = await read<{ runs: { run_id: string }[] }>('/runs?limit=1');
  const [run] = runs;
  if (run !== undefined) await follow(await call(`${path}/events?after=${seq}&run=${run.run_id}`), question);
}

async function create(): Promise<string> {
  const response = await call(`/agent/${encodeURIComponent(agent)}/session`, {});
  const { session_id: session } = (await response.json()) as { session_id: string };
  console.log(pc.dim(`session ${session} with ${agent}; end with an empty line or Ctrl-D`));
  return session;
}

try {
  const joined = /^ses_[0-9a-f]{32}$/.test(agent) ? agent : null;
  const session = joined ?? (await create());
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Piped input ends long before its last line has an answer.
  let open = true;
  const closed = new Promise<null>((resolve) => {
    terminal.once('close', () => {
      open = false;
      resolve(null);
    });
  });
  const prompt = (): void => {
    if (open) terminal.prompt();
  };
  /** Ends the line of a prompt, if no terminal has done so. @param line null at the end of the input */
  const echo = (line: string | null): void => {
    if (line === null || process.stdin.isTTY !== true) console.log(visible(line ?? ''));
  };
  // A question that is open when the input ends never settles by itself.
  const question: Question = async (text) => {
    if (!open) return null;
    const answer = await Promise.race([terminal.question(text).catch(() => null), closed]);
    echo(answer);
    return answer;
  };
  terminal.setPrompt(pc.cyan('> '));
  // Collects lines from now on, also those that are typed while the session is joined.
  const lines = terminal[Symbol.asyncIterator]();
  if (joined !== null) await join(joined, question);
  const attachments = new Attachments();
  prompt();
  for await (const line of lines) {
    echo(line);
    if (line.trim() === '') break;
    const attached = await attachments.command(line);
    if (attached === null) {
      await follow(await call(`/agent/session/${session}/message`, { content: attachments.take(line) }), question);
    } else console.log(pc.dim(visible(attached)));
    prompt();
  }
  terminal.close();
} catch (fault) {
  console.error(pc.red(fault instanceof Error ? fault.message : String(fault)));
  process.exitCode = 1;
}
