/** `npm run chat [-- agent]`: a conversation in the terminal with the system at PORT, actions shown as they run. */
import { createInterface } from 'node:readline/promises';
import pc from 'picocolors';
import { readEvents } from './event-client.ts';
import type { WireEvent } from './event-client.ts';

const url = `http://127.0.0.1:${process.env['PORT'] || 8787}`;
const agent = process.argv[2] ?? 'assistant';

async function post(path: string, body: unknown): Promise<Response> {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  const key = process.env['CORTEX_API_KEY'];
  if (key !== undefined) headers['authorization'] = `Bearer ${key}`;
  try {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (response.ok) return response;
    const problem = (await response.json()) as { code: string; detail: string };
    throw new Error(`${problem.code}: ${problem.detail}`);
  } catch (fault) {
    if (fault instanceof TypeError)
      throw new Error(`nothing answers at ${url}; run npm start in another terminal`, { cause: fault });
    throw fault;
  }
}

/** Prints blocks as they grow: a patch that goes on where the last one stopped is just written. */
class Screen {
  #segment = -1;
  #length = 0;

  show(event: WireEvent): void {
    const { data } = event;
    if (event.type === 'thought' || event.type === 'response' || event.type === 'text') {
      const paint = event.type === 'thought' ? pc.dim : (text: string): string => text;
      if (data['segment'] !== this.#segment) {
        this.#newLine();
        this.#segment = Number(data['segment']);
        this.#length = 0;
      }
      const fresh = String(data['delta']).slice(Math.max(0, this.#length - Number(data['offset'])));
      process.stdout.write(paint(fresh));
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

  #line({ type, action_id: id, action_name: name, data }: WireEvent): string | null {
    const label = name === undefined || name === id ? String(id) : `${id} (${name})`;
    const error = data['error'] as { code?: string; message?: string } | undefined;
    switch (type) {
      case 'action_started':
        return pc.yellow(`  ▶ ${label}`);
      case 'action_completed':
        return `${pc.green(`  ✓ ${label}`)} ${pc.dim(`${String(data['ms'])} ms`)}`;
      case 'action_failed':
        return pc.red(`  ✗ ${label}: ${error?.code}: ${error?.message}`);
      case 'action_rejected':
        return pc.red(`  ✗ ${label}: ${String(data['code'])}: ${String(data['message'])}`);
      case 'action_skipped':
      case 'action_cancelled':
        return pc.dim(`  – ${label}: ${type.slice(7)} (${String(data['reason'])})`);
      case 'agent_failed':
        return pc.red(`The run failed: ${error?.code}: ${error?.message}`);
      default:
        return null;
    }
  }
}

try {
  const created = (await (await post(`/agent/${encodeURIComponent(agent)}/session`, {})).json()) as {
    session_id: string;
  };
  console.log(pc.dim(`session ${created.session_id} with ${agent}; an empty line or Ctrl-D ends`));
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Input that comes from a pipe has ended long before its last line is answered.
  let open = true;
  terminal.once('close', () => (open = false));
  const prompt = (): void => {
    if (open) terminal.prompt();
  };
  terminal.setPrompt(pc.cyan('> '));
  prompt();
  for await (const line of terminal) {
    if (line.trim() === '') break;
    const screen = new Screen();
    const answer = await post(`/agent/session/${created.session_id}/message`, { content: line });
    for await (const event of readEvents(answer)) screen.show(event);
    screen.end();
    prompt();
  }
  terminal.close();
} catch (fault) {
  console.error(pc.red(fault instanceof Error ? fault.message : String(fault)));
  process.exitCode = 1;
}
