/**
 * `npm run chat [-- agent] [--key <key>]`: chats in the terminal with the system at PORT, shows actions as they run, and
 * asks for approvals. The key can also be in CORTEX_API_KEY.
 */
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { connectionOf, request } from './terminal/connection.ts';
import type { Connection } from './terminal/connection.ts';
import { readEvents } from './terminal/event-client.ts';
import type { EventOf, SessionEvent } from '../src/domain/event.ts';
import { boxed, harmless, visible } from './terminal/visible.ts';

const USAGE = 'npm run chat -- [agent] [--key <key>]';

function readArguments(): { readonly agent: string; readonly connection: Connection } {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { key: { type: 'string' } } });
    const [agent = 'assistant', ...others] = positionals;
    if (others.length > 0) throw new Error(`expected one agent's name, got ${positionals.length} arguments`);
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

const ENDS = new Set(['agent_completed', 'agent_failed', 'agent_cancelled']);

/** @param body absent for a GET */
async function call(path: string, body?: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return await request(
    connection,
    path,
    body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
  );
}

/** Prints blocks while they grow: writes only the part of a patch that is new. */
class Screen {
  #segment = -1;
  #length = 0;

  show(event: SessionEvent): void {
    if (event.type === 'thought' || event.type === 'response' || event.type === 'text') {
      const paint = event.type === 'thought' ? pc.dim : (text: string): string => text;
      const { segment, offset, delta } = event.data;
      if (segment !== this.#segment) {
        this.#newLine();
        this.#segment = segment;
        this.#length = 0;
      }
      const fresh = delta.slice(Math.max(0, this.#length - offset));
      process.stdout.write(paint(harmless(fresh)));
      this.#length += fresh.length;
      return;
    }
    const line = this.#line(event);
    if (line === null) return;
    this.#newLine();
    console.log(line);
  }

  end(): void {
    this.#newLine();
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

/** Shows the call of an action and asks for approval. Null: no answer. */
async function ask(event: EventOf<'approval_requested'>, question: Question): Promise<boolean | null> {
  const { data, session_id: session, action_id: id, action_name: name } = event;
  const path = `/agent/session/${session}/approvals/${data.approval_id}`;
  // 0 if the terminal's size is unknown
  const columns = process.stdout.columns || 80;
  const what = [data.type, ...(name === undefined || name === data.type ? [] : [name])].join(' ');
  console.log(pc.yellow(`  ? ${visible(`${id} (${what})`)} waits for your approval`));
  if (data.complete || data.bytes <= PRINTED_BYTES) {
    const { parameters, inputs = {} } = data.complete ? data : ((await (await call(path)).json()) as typeof data);
    console.log(boxed(parameters, columns));
    if (Object.keys(inputs).length > 0) console.log(`  inputs\n${boxed(inputs, columns)}`);
  } else console.log(`    too long to show; read it before you decide: ${CURL} ${connection.url}${path}`);
  console.log(pc.dim(`    ${data.bytes} bytes, sha256 ${data.sha256}`));
  const said = await question('  approve? [y/N] ');
  if (said !== null) return /^y(es)?$/i.test(said.trim());
  console.log(`    decide with: ${CURL} ${connection.url}${path} -d '{"decision": "approve"}'`);
  return null;
}

/** Shows a run to its end. Asks for approvals, then continues with the run's stream. */
async function follow(answer: Response, question: Question): Promise<void> {
  let stream = answer;
  for (let goesOn = true; goesOn;) {
    goesOn = false;
    const screen = new Screen();
    let last: SessionEvent | null = null;
    let unanswered = false;
    for await (const event of readEvents(stream)) {
      if (event.seq !== null) last = event;
      const inner = innermost(event);
      if (inner.type === 'approval_requested') {
        screen.end();
        const approved = await ask(inner, question);
        unanswered ||= approved === null;
        const path = `/agent/session/${inner.session_id}/approvals/${inner.data.approval_id}`;
        if (approved !== null) {
          // Another client may have decided meanwhile; its decision counts.
          await call(path, { decision: approved ? 'approve' : 'deny' }).catch((fault: unknown) => {
            console.log(pc.red(`  ${fault instanceof Error ? fault.message : String(fault)}`));
          });
        }
      } else screen.show(event);
      if (ENDS.has(event.type)) break;
    }
    screen.end();
    if (last?.type !== 'agent_waiting' || unanswered) continue;
    goesOn = true;
    stream = await call(`/agent/session/${last.session_id}/events?after=${last.seq}&run=${last.run_id}`);
  }
}

try {
  const created = (await (await call(`/agent/${encodeURIComponent(agent)}/session`, {})).json()) as {
    session_id: string;
  };
  console.log(pc.dim(`session ${created.session_id} with ${agent}; end with an empty line or Ctrl-D`));
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Piped input ends long before its last line has an answer.
  let open = true;
  terminal.once('close', () => (open = false));
  const prompt = (): void => {
    if (open) terminal.prompt();
  };
  terminal.setPrompt(pc.cyan('> '));
  prompt();
  for await (const line of terminal) {
    if (line.trim() === '') break;
    const answer = await call(`/agent/session/${created.session_id}/message`, { content: line });
    await follow(answer, async (text) => (open ? await terminal.question(text).catch(() => null) : null));
    prompt();
  }
  terminal.close();
} catch (fault) {
  console.error(pc.red(fault instanceof Error ? fault.message : String(fault)));
  process.exitCode = 1;
}
