import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import { connectionOf, noSystem, request } from '../terminal/connection.ts';
import type { Connection, ConnectionSource } from '../terminal/connection.ts';
import { readEvents } from '../terminal/event-client.ts';
import { freePort } from '../system/services.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { PACKAGE_ROOT } from '../project/folders.ts';
import { startSystem } from '../system/system.ts';
import { Timeline } from '../terminal/timeline.ts';

export const command: Command = {
  name: 'demo',
  summary: 'Prints the plan of a ten-action program, then runs it with a live timeline.',
  usage: '',
  help: '  Without a running system, it starts one on free ports and stops it at the end.',
  example: 'cortex demo',
  isRemote: true,
  positionals: [0, 0],
  run: async (call) => {
    const { connection, stop } = await connect(call);
    try {
      await show(connection, call);
    } finally {
      await stop();
    }
    return EXIT.ok;
  },
};

/** Milliseconds in the demo per second of the plan. */
const SCALE_MS = 25;
/** Characters of protocol text per chunk and milliseconds between chunks: about 60 tokens a second. */
const PACE = { chars: 24, ms: 100 } as const;

interface PlannedAction {
  readonly id: string;
  readonly type: string;
  readonly mode: string;
  readonly name: string;
  readonly parameters: Record<string, unknown>;
  readonly depends_on: readonly string[];
  readonly timeout: number;
}

interface Plan {
  readonly actions: readonly (PlannedAction & { readonly estimate_ms: number })[];
  readonly estimates: { readonly sequential_ms: number; readonly waves_ms: number; readonly critical_path_ms: number };
  readonly report: string;
}

async function show(connection: Connection, { json, print, tell }: CommandCall): Promise<void> {
  const say = json ? tell : print;
  const text = readFileSync(join(PACKAGE_ROOT, 'cli/demo/research-assistant.xml'), 'utf8');
  const planned = await request(connection, '/plan', { method: 'POST', body: JSON.stringify({ protocol_text: text }) });
  const plan = (await planned.json()) as Plan;
  say(plan.report);

  const labels = new Map(plan.actions.map((action) => [action.id, String(action.parameters['label'] ?? action.name)]));
  const protocol = scaled(plan);
  say(
    `\n${pc.bold('Running it')} at ${SCALE_MS} ms per second. Every action is the echo tool with the planned duration, ` +
      'so the measured time is that of the system; the text is streamed like the output of a model.\n',
  );
  const timeline = new Timeline(labels);
  const response = await request(connection, '/execute/streaming_protocol', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: paced(protocol),
    duplex: 'half',
  } as RequestInit);
  const redraw = json ? null : setInterval(() => timeline.redraw(Date.now()), 100);
  let answer = '';
  for await (const event of readEvents(response)) {
    timeline.take(event);
    if (event.type === 'response_completed') answer = event.data.content;
    if (event.type === 'agent_failed') throw new Error(`the run failed: ${JSON.stringify(event.data.error)}`);
  }
  if (redraw !== null) clearInterval(redraw);
  if (!json) timeline.redraw(Date.now());
  if (json || !process.stdout.isTTY) say(timeline.render(Date.now()));
  say(`\n  ${pc.dim('answer')}  ${answer}\n`);
  say(summary(plan, timeline));
  if (json) print(JSON.stringify({ answer, scale_ms: SCALE_MS, estimates: plan.estimates, actions: timeline.rows }));
}

/** The same graph with scaled durations. */
function scaled(plan: Plan): string {
  const actions = plan.actions.map((action) => {
    const body = {
      name: 'echo',
      parameters: { delay_ms: Math.round((action.estimate_ms / 1_000) * SCALE_MS), done: action.id },
      depends_on: action.depends_on,
      output_key: `${action.id}_result`,
    };
    return `<action type="tool" mode="${action.mode}" id="${action.id}">${JSON.stringify(body)}</action>`;
  });
  return `<thought>Ten actions, declared in one go.\n${actions.join('\n')}\n</thought>\n<response final="true">The report is ready: $finalize_result.done after $quality_result.done and $citations_result.done.</response>`;
}

function paced(protocol: string): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (at >= protocol.length) return controller.close();
      controller.enqueue(encoder.encode(protocol.slice(at, at + PACE.chars)));
      at += PACE.chars;
      await delay(PACE.ms / 4);
    },
  });
}

/** Compares the measurement with the estimates, and with the lower bound for the times at which actions were declared. */
function summary(plan: Plan, timeline: Timeline): string {
  const rows = new Map(timeline.rows.map((row) => [row.id, row]));
  const start = Math.min(...timeline.rows.map((row) => row.queuedAt));
  const end = Math.max(...timeline.rows.map((row) => row.endedAt ?? start));
  const finish = new Map<string, number>();
  for (const action of plan.actions) {
    const released = rows.get(action.id)?.queuedAt ?? start;
    const ready = Math.max(released, ...action.depends_on.map((id) => finish.get(id) ?? start));
    finish.set(action.id, ready + (action.estimate_ms / 1_000) * SCALE_MS);
  }
  const bound = Math.max(...finish.values()) - start;
  const atScale = (ms: number): string => `${Math.round((ms / 1_000) * SCALE_MS)} ms`.padStart(9);
  const line = (name: string, value: string): string => `  ${name.padEnd(44)}${value}`;
  return [
    pc.bold('Makespan'),
    line('sequential (estimate)', atScale(plan.estimates.sequential_ms)),
    line('wave by wave (estimate)', atScale(plan.estimates.waves_ms)),
    line('critical path (estimate)', atScale(plan.estimates.critical_path_ms)),
    line('lower bound: start at the closing tag', `${Math.round(bound)} ms`.padStart(9)),
    pc.bold(line('measured', `${end - start} ms`.padStart(9))),
  ].join('\n');
}

/** Connects to the running system, or starts one on free ports that is stopped at the end. */
async function connect(call: ConnectionSource): Promise<{ readonly connection: Connection; stop(): Promise<void> }> {
  const connection = connectionOf(call);
  const { url } = connection;
  try {
    const health = (await (await fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) })).json()) as {
      service?: string;
    };
    if (health.service === 'cortex-edge') return { connection, stop: async () => undefined };
  } catch {
    // No system there.
  }
  if (call.values['url'] !== undefined || (call.environment['CORTEX_URL'] ?? '') !== '') throw noSystem(connection);
  call.tell(pc.dim(`No system at ${url}; starting one for the demo …`));
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-demo-'));
  const system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir,
    vars: {},
    ownRunner: true,
    progress: () => undefined,
  });
  return {
    connection: { url: system.url, key: null },
    stop: async () => {
      await system.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
