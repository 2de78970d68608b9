/** `cortex prompt`, `grammar` and `plan`: from the running system, else from the bundled manifests (L4). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import type { PromptDocument } from '../../src/dry-run/agent-documents.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { buildGrammar } from '../../src/protocol/grammar/grammar.ts';
import { buildSystemPrompt } from '../../src/protocol/prompt/prompt.ts';
import { edgeApp, noManifests } from '../http/edge-app.ts';
import { dispatched } from './dispatched.ts';
import type { Dispatched } from './dispatched.ts';
import { folderOfFile, serverOfFile } from './scene.ts';

const assistant = bundled.agent('assistant');
if (assistant === null) throw new Error('no assistant');
/** An agent that only the running system knows. */
const tutor = {
  ...assistant,
  agent: {
    ...assistant.agent,
    name: 'tutor',
    summary: 'Uploaded a second ago.',
    prompt: { actions: false, examples: ['Mine.'] },
  } as const,
};
const listed = { kind: 'agent' as const, name: 'tutor', version: '1', revision: 1, summary: '', tags: [] };

const app = edgeApp({
  auth: { keys: parseApiKeys('ann:run:right-key'), allowedOrigins: [] },
  agent: async (name, owner) => (name === 'tutor' && owner === 'ann' ? tutor : null),
  manifests: { ...noManifests, list: async () => [{ ...listed, common: false, updatedAt: 0 }] },
  status: async () => ({ executors: [], model: 'm', runner: null }),
});
const server = serverOfFile(async (asked, answer) => {
  const body = asked.method === 'POST' ? { body: await text(asked) } : {};
  const headers = Object.entries(asked.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const request = new Request(`http://${asked.headers.host}${asked.url}`, {
    method: asked.method ?? 'GET',
    headers,
    ...body,
  });
  const response = await app.fetch(request);
  answer.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
});
const folder = folderOfFile();
const program = join(folder, 'program.xml');
writeFileSync(program, '<action name="ecko" id="a">{}</action>');

const run = async (args: readonly string[], at: 'system' | 'nothing', key = 'right-key'): Promise<Dispatched> =>
  await dispatched(args, { PORT: at === 'system' ? String(server.port) : '1', CORTEX_API_KEY: key });

test('[L4] cortex prompt prints the prompt of an uploaded agent, and the tokens of its sections', async () => {
  const { out, err, code } = await run(['prompt', 'tutor'], 'system');
  expect(out).toBe(`${buildSystemPrompt(tutor)}\n`);
  expect(err).toContain(`from the running system at ${server.url}`);
  expect(err).toMatch(/\d+ characters, about \d+ tokens\n +\d+ {2}Who the agent is\n +\d+ {2}How you act\n/);
  expect(code).toBe(0);
});

test('[L4] cortex prompt --parts prints each part with its tokens, its share, and what the manifest does with it', async () => {
  const { out, code } = await run(['prompt', 'tutor', '--parts'], 'system');
  const lines = out.split('\n').slice(0, -1);
  expect(lines[0]).toMatch(/^ +\d+ +\d+\.\d% {2}identity$/);
  expect(lines).toContainEqual(expect.stringMatching(/^ +0 +0\.0% {2}actions +left out$/));
  expect(lines).toContainEqual(expect.stringMatching(/^ +2 +0\.\d% {2}examples +replaced$/));
  expect(lines.at(-1)).toMatch(/^ +\d+ +100\.0% {2}all parts, estimated$/);
  expect(lines).toHaveLength(10);
  expect(code).toBe(0);
  const { out: json } = await run(['prompt', 'tutor', '--json'], 'system');
  const { parts } = JSON.parse(json) as PromptDocument;
  expect(parts.slice(0, 3).map(({ id, state }) => [id, state])).toEqual([
    ['identity', 'built_in'],
    ['protocol', 'built_in'],
    ['actions', 'left_out'],
  ]);
});

test('[P18] cortex grammar prints the grammar of an uploaded agent', async () => {
  const { out, err } = await run(['grammar', 'tutor', '--format', 'lark', '--form', 'compact'], 'system');
  expect(out).toBe(buildGrammar(tutor, { format: 'lark', form: 'compact' }).text);
  expect(err).toContain('from the running system');
});

test('[S13] cortex plan looks names up for an uploaded agent', async () => {
  const { out, err } = await run(['plan', program, 'tutor'], 'system');
  expect(out).toContain('(did you mean "echo"?)');
  expect(err).toContain('from the running system');
  const alone = await run(['plan', program], 'system');
  expect([alone.err, alone.code]).toEqual(['', 0]);
});

test.each([[['prompt', 'assistant']], [['grammar', 'assistant']], [['plan', program, 'assistant']]])(
  '[L4] cortex %j reads the folder if no system is running',
  async (args) => {
    const { out, err, code } = await run(args, 'nothing');
    expect(out).not.toBe('');
    expect(err).toContain('from the folder manifests/, because no system is running at http://127.0.0.1:1');
    expect(code).toBe(0);
  },
);

test.each([
  ['system', 'tutr', 'unknown_agent: No agent is called "tutr" (did you mean "tutor"? known: tutor)'],
  ['nothing', 'asistant', 'unknown agent "asistant" (did you mean "assistant"? known: '],
] as const)('[M3] the nearest name is suggested, at %s: %s', async (at, name, said) => {
  const { err, code } = await run(['prompt', name], at);
  expect(err).toContain(said);
  expect(code).toBe(1);
});

test('[H5] a wrong key is an error, and not a reason to read the folder', async () => {
  const { out, err, code } = await run(['prompt', 'assistant'], 'system', 'wrong-key');
  expect([out, code]).toEqual(['', 3]);
  expect(err).toContain('does not know this API key');
});
