/**
 * The conformance referee of the Model Context Protocol: the tools that it asks for by name, as manifests, and what does not
 * apply (E4).
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const text = { type: 'text', text: 'This is a simple text response for testing.' };
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
};

/** A workflow whose outputs are this content. */
const contentOf = (name: string, content: readonly object[]): [string, string] => [
  `workflows/${name}.yaml`,
  JSON.stringify({
    kind: 'Workflow',
    version: '1.0',
    name,
    summary: 'Returns content.',
    inputs: { type: 'object' },
    expose: 'mcp',
    steps: [{ name: 's', type: 'value', value: content }],
    outputs: { content: 'steps.s' },
  }),
];

const toolOf = (name: string, more: object): [string, string] => [
  `tools/${name}.yaml`,
  JSON.stringify({ kind: 'Tool', version: '1.0', name, summary: 'For the referee.', expose: 'mcp', ...more }),
];

/** Tools that need an approval: the referee takes its question for one of the tool. */
const ASKING = [
  'test_streaming_elicitation',
  'test_input_required_result_elicitation',
  'test_input_required_result_request_state',
  'test_input_required_result_tampered_state',
];

const asking = {
  implementation: { type: 'builtin', entrypoint: 'echo' },
  parameters: { type: 'object', properties: { text: { type: 'string', default: 'hello' } } },
  approval: 'always',
};

export const REFEREE_MANIFESTS: Readonly<Record<string, string>> = Object.fromEntries([
  contentOf('test_simple_text', [text]),
  contentOf('test_image_content', [image]),
  contentOf('test_audio_content', [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]),
  contentOf('test_embedded_resource', [embedded]),
  contentOf('test_multiple_content_types', [text, image, embedded]),
  contentOf('test_tool_with_progress', [text]),
  contentOf('test_logging_tool', [text]),
  ...ASKING.map((name) => toolOf(name, asking)),
  toolOf('test_error_handling', {
    implementation: { type: 'builtin', entrypoint: 'calculator' },
    parameters: { type: 'object', properties: { expression: { type: 'string', default: '1 / 0 +' } } },
  }),
  [
    'agents/referee.yaml',
    JSON.stringify({
      kind: 'Agent',
      version: '1.0',
      name: 'referee',
      summary: 'Imports the tools of the referee.',
      persona: 'You are not called.',
      import: { tools: ['test_error_handling', ...ASKING] },
    }),
  ],
]);

const NO_PROMPTS = 'There are no prompts';
const NO_COMPLETIONS = 'There are no completions';
const NO_FIXED = 'It reads fixed resources; ours are the artifacts of runs';
const NO_SAMPLING = 'Agents have models of their own, and never ask for one, or for roots';
const NO_QUESTIONS = 'It expects questions of its own; ours are approvals';
const NO_LOGGING = 'There is no logging';
const NO_PUSH = 'A question to a client of 2025-11-25 needs a connection that is kept';
const TASKS_AT_ONCE =
  'It calls tools that become tasks at once; ours become tasks after a second. test/runtime/mcp.test.ts has tasks';
const NO_SUBSCRIPTIONS = 'Nothing announces that a resource has changed';

/** What does not apply: how many checks of a scenario fail, and why. */
export const NOT_APPLICABLE: Readonly<
  Record<string, Readonly<Record<string, readonly [failed: number, why: string]>>>
> = {
  '2026-07-28': {
    'server-stateless': [2, 'No tool needs a capability of the client: without one, the question is a text'],
    'completion-complete': [1, NO_COMPLETIONS],
    'resources-read-text': [1, NO_FIXED],
    'resources-read-binary': [1, NO_FIXED],
    'resources-templates-read': [1, NO_FIXED],
    'prompts-list': [1, NO_PROMPTS],
    'prompts-get-simple': [1, NO_PROMPTS],
    'prompts-get-with-args': [1, NO_PROMPTS],
    'prompts-get-embedded-resource': [1, NO_PROMPTS],
    'prompts-get-with-image': [1, NO_PROMPTS],
    caching: [1, `${NO_PROMPTS}: its check of prompts/list; the other six pass`],
    'input-required-result-basic-elicitation': [1, NO_QUESTIONS],
    'input-required-result-basic-sampling': [1, NO_SAMPLING],
    'input-required-result-basic-list-roots': [1, NO_SAMPLING],
    'input-required-result-multiple-input-requests': [1, NO_SAMPLING],
    'input-required-result-multi-round': [1, NO_QUESTIONS],
    'input-required-result-non-tool-request': [1, NO_PROMPTS],
    'input-required-result-capability-check': [1, NO_SAMPLING],
    'tasks-lifecycle': [8, TASKS_AT_ONCE],
    'tasks-capability-negotiation': [2, TASKS_AT_ONCE],
    'tasks-wire-fields': [3, TASKS_AT_ONCE],
    'tasks-request-state-removal': [1, TASKS_AT_ONCE],
    'tasks-mrtr-input': [3, TASKS_AT_ONCE],
    'tasks-request-headers': [3, TASKS_AT_ONCE],
    'tasks-dispatch-and-envelope': [5, TASKS_AT_ONCE],
    'tasks-required-task-error': [1, 'No tool needs to be a task'],
    'tasks-mrtr-composition': [1, NO_QUESTIONS],
    'json-schema-2020-12': [1, 'Manifests have a part of JSON Schema; optional, and pending at the referee'],
    'http-custom-header-server-validation': [5, 'No parameter has a header; optional, and pending at the referee'],
  },
  '2025-11-25': {
    'logging-set-level': [1, NO_LOGGING],
    'completion-complete': [1, NO_COMPLETIONS],
    'tools-call-with-logging': [1, NO_LOGGING],
    'tools-call-sampling': [1, NO_SAMPLING],
    'tools-call-elicitation': [1, NO_PUSH],
    'elicitation-sep1034-defaults': [1, NO_PUSH],
    'elicitation-sep1330-enums': [1, NO_PUSH],
    'resources-read-text': [1, NO_FIXED],
    'resources-read-binary': [1, NO_FIXED],
    'resources-templates-read': [1, NO_FIXED],
    'resources-subscribe': [1, NO_SUBSCRIPTIONS],
    'resources-unsubscribe': [1, NO_SUBSCRIPTIONS],
    'prompts-list': [1, NO_PROMPTS],
    'prompts-get-simple': [1, NO_PROMPTS],
    'prompts-get-with-args': [1, NO_PROMPTS],
    'prompts-get-embedded-resource': [1, NO_PROMPTS],
    'prompts-get-with-image': [1, NO_PROMPTS],
    'json-schema-2020-12': [1, 'Manifests have a part of JSON Schema; optional, and pending at the referee'],
  },
};

export interface Verdict {
  /** Failed checks by scenario, for scenarios with any. */
  readonly failed: Readonly<Record<string, number>>;
  /** Scenarios that ran. */
  readonly scenarios: readonly string[];
  readonly output: string;
}

/** Runs all that the referee requires for a revision. */
export async function refereed(url: string, revision: string): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-referee-'));
  try {
    const program = join(PACKAGE_ROOT, 'node_modules/.bin/conformance');
    const output = await outputOf(program, ['server', '--url', url, '--requirements', revision], folder);
    const results = [...output.matchAll(/^[✓✗] (\S+): \d+ passed, (\d+) failed$/gm)];
    const failed = results.flatMap(([, name = '', count]) =>
      Number(count) > 0 ? [[name, Number(count)] as const] : [],
    );
    return { failed: Object.fromEntries(failed), scenarios: results.map(([, name = '']) => name), output };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a program writes, whatever its exit code is. */
export async function outputOf(program: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(program, args, { cwd, env: { ...process.env, NO_COLOR: '1' } });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await new Promise((resolve, reject) => child.on('close', resolve).on('error', reject));
  return output;
}
