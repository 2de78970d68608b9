/** An HTTP client of the Worker under test, as on this machine. */
import { exports } from 'cloudflare:workers';
import { createParser } from 'eventsource-parser';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { RunResult } from '../../src/view/result.ts';

const HOST = 'http://127.0.0.1:8787';

export async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const { default: worker } = exports as unknown as { default: { fetch(request: Request): Promise<Response> } };
  return await worker.fetch(new Request(`${HOST}${path}`, init));
}

export async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return await call(path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });
}

/** Runs protocol text to its end and returns the result document (H7). */
export async function execute(protocolText: string, more: Record<string, unknown> = {}): Promise<RunResult> {
  const response = await post('/execute/direct', { protocol_text: protocolText, stream: false, ...more });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  return await response.json();
}

export async function newSession(agent = 'assistant', body: Record<string, unknown> = {}): Promise<string> {
  const response = await post(`/agent/${agent}/session`, body);
  const { session_id: id } = await response.json<{ session_id: string }>();
  return id;
}

export const manifest = (kind: string, name: string, more: string): string =>
  `kind: ${kind}\nversion: "1.0"\nname: ${name}\nsummary: Of a test.\n${more}\n`;

/** Stores manifests, as they are for `PUT /manifests/{kind}/{name}`. */
export async function upload(...texts: readonly string[]): Promise<void> {
  for (const body of texts) {
    const [, kind = '', name = ''] = /^kind: (\w+)\n[^]*?^name: (\w+)$/m.exec(body) ?? [];
    const stored = await call(`/manifests/${kind.toLowerCase()}/${name}`, { method: 'PUT', body });
    if (!stored.ok) throw new Error(await stored.text());
  }
}

/** A tool whose calls a person must approve, and an agent that has it. */
export const SEAL = manifest(
  'Tool',
  'seal',
  'implementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always',
);
export const SEALER = manifest('Agent', 'sealer', 'persona: You seal.\nimport: {tools: [seal]}');

/** The record of a conversation with the assistant, for a session that a test creates in its object. */
export function chatRecord(id: string): SessionRecord {
  const names = { session_id: id, agent: 'assistant', user_id: null, owner: null } as const;
  return { ...names, kind: 'chat', metadata: {}, created_at: Date.now() };
}

/** All events of a streaming answer; stops early when `until` returns true. */
export async function events(
  response: Response,
  until: (event: SessionEvent) => boolean = () => false,
): Promise<SessionEvent[]> {
  const all: SessionEvent[] = [];
  const parser = createParser({ onEvent: ({ data }) => void all.push(JSON.parse(data) as SessionEvent) });
  if (response.body === null) return all;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const before = all.length;
    parser.feed(read.value);
    if (all.slice(before).some(until)) break;
  }
  await reader.cancel();
  return all;
}

/** The text that a reader shows after it has applied every patch as H2 and J4 define. */
export function shownText(all: readonly SessionEvent[]): Map<number, string> {
  const blocks = new Map<number, string>();
  for (const event of all) {
    if (event.type === 'thought' || event.type === 'text' || event.type === 'response') {
      const { segment, offset, delta } = event.data;
      blocks.set(segment, (blocks.get(segment) ?? '').slice(0, offset) + delta);
    }
  }
  return blocks;
}
