/** Agents of the original: imports and feeds. */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';

interface Loaded {
  readonly agent: AgentDefinition | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const HEAD = 'kind: Agent\nversion: "1.0"\nname: helper\nsummary: s\npersona: p\n';
const FEED = 'kind: Feed\nversion: "1.0"\nname: pulse\nsummary: s\nruntime: bash\nentrypoint: ./poll.sh\n';
const TOOL = 'kind: Tool\nversion: "1.0"\nname: exec\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n';

function load(yaml: string, files: Readonly<Record<string, string>> = {}): Loaded {
  const all = { 'a/agent.yml': `${HEAD}${yaml}\n`, ...files };
  const loaded = migrated(
    Object.entries(all).map(([path, text]) => ({ path, text })),
    { bundled },
  );
  return {
    agent: loaded.catalog.agent('helper')?.agent,
    problems: loaded.problems.map(formatProblem),
    warnings: loaded.warnings
      .filter(({ file }) => file === 'a/agent.yml')
      .map(({ field, message }) => `${field}: ${message}`),
  };
}

describe('[M2] imports of the original', () => {
  test('a compiled tool has a substitute or is omitted, and the agent loads', () => {
    const { agent, problems, warnings } = load('import: {tools: [builtin/exec, json, web_fetch, fs_read, calculator]}');
    expect(problems).toEqual([]);
    expect(agent?.imports.tools).toEqual(['json_query', 'web_fetch', 'calculator']);
    expect(agent?.capabilities).toEqual(['shell']);
    expect(warnings).toEqual([
      'import.tools[0]: builtin/ is not part of the name',
      expect.stringContaining(
        'import.tools[0]: the tool exec is compiled into agent-lib, and here the agent may use shell',
      ),
      expect.stringContaining(
        'import.tools[1]: the tool json is compiled into agent-lib, and here the tool json_query is used',
      ),
      expect.stringContaining('import.tools[3]: the tool fs_read is compiled into agent-lib, and here it is omitted'),
    ]);
  });

  test('compiled tools with the same advice have one note', () => {
    const { agent, warnings } = load('import: {tools: [grep, sleep, fs_read, fs_write]}');
    expect(agent?.imports.tools).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/^import\.tools\[0\]: the tools grep, fs_read and fs_write are compiled into agent-lib/),
      expect.stringMatching(
        /^import\.tools\[1\]: the tool sleep is compiled into agent-lib, and here it is omitted: use/,
      ),
    ]);
  });

  test('[X4] a tool of the folder with the name of a compiled tool is used, and grants no capability', () => {
    const { agent, warnings } = load('import: {tools: [exec]}', { 'a/exec.yaml': TOOL });
    expect(agent?.imports.tools).toEqual(['exec']);
    expect(agent?.capabilities).toEqual([]);
    expect(warnings).toEqual([]);
  });

  test.each([
    ['{allowed_commands: [ls, cat], allowed_hosts: ["*"]}', [], ['web_fetch']],
    ['{mode: process}', [], []],
    ['{allowed_commands: ["*"], allowed_hosts: [a.example]}', ['shell'], []],
    ['{allowed_commands: ["*"], allowed_hosts: ["*"], network: none}', ['shell'], []],
    ['{allowed_commands: ["*"], allowed_hosts: ["*"]}', ['shell'], ['web_fetch']],
  ])('[X4] with the sandbox %s, nothing gets more than it allows', (sandbox, capabilities, tools) => {
    const { agent, problems, warnings } = load(`sandbox: ${sandbox}\nimport: {tools: [exec, web_fetch]}`);
    expect(problems).toEqual([]);
    expect(agent?.capabilities).toEqual(capabilities);
    expect(agent?.imports.tools).toEqual(tools);
    const omitted = warnings.filter((one) => one.includes('omitted, because sandbox.'));
    expect(omitted).toHaveLength(2 - capabilities.length - tools.length);
  });

  test('an unknown tool is an error', () => {
    expect(load('import: {tools: [kubectl]}').problems).toEqual([
      expect.stringContaining('"kubectl", which does not exist'),
    ]);
  });

  test('env has variables; what has no counterpart is named once', () => {
    const { agent, problems, warnings } = load(
      'import: {env: ["ROOT=/srv/a=b", TOKEN], metadata: [m.yml], amulets: [x], monuments: [y], tools: echo}\nenvironment: {variables: {B: c}}',
    );
    expect(problems).toEqual([]);
    expect(agent?.variables).toEqual({ ROOT: '/srv/a=b', B: 'c' });
    expect(agent?.imports.tools).toEqual(['echo']);
    expect(warnings).toEqual([
      'import.env: understood as environment.variables; "TOKEN" has no value: the environment is never read',
      'import.metadata: metadata, amulets and monuments have no effect here',
      'import.tools: text, understood as a list of one name',
    ]);
  });

  test('a relic may be imported by its folder', () => {
    const relic = 'kind: Relic\nversion: 1\nname: memo\nsummary: s\nimplementation: {type: edge, store: kv}\n';
    const { agent, problems } = load('import: {relics: [./relics/memo/]}', { 'a/relics/memo/relic.yml': relic });
    expect(problems).toEqual([]);
    expect(agent?.imports.relics).toEqual(['memo']);
  });

  test('feeds are context feeds of the tool, by name, by path or compiled in', () => {
    const { agent, problems, warnings } = load(
      'import:\n  feeds: [system_clock, ./feeds/pulse/feed.yml, system_stats, working_directory, gone]\ncontext_feeds: [{id: mine, source: {type: internal, action: usage}}]',
      { 'a/feeds/pulse/feed.yml': `${FEED}interval_secs: 45\n`, 'a/feeds/pulse/poll.sh': 'echo 1' },
    );
    expect(problems).toEqual([]);
    expect(agent?.feeds).toMatchObject([
      { id: 'mine' },
      { id: 'system_clock', source: { type: 'internal', name: 'system_clock' } },
      { id: 'pulse', when: 'on_demand', cacheTtlMs: 45_000, source: { type: 'tool', name: 'pulse' } },
      { id: 'system_stats', source: { type: 'tool', name: 'system_status' } },
    ]);
    expect(agent?.imports.tools).toEqual(['pulse', 'system_status']);
    expect(warnings).toEqual([
      'import.feeds: understood as context_feeds',
      expect.stringContaining('import.feeds[2]: the feed system_stats is compiled into agent-lib'),
      expect.stringContaining(
        'import.feeds[3]: the feed working_directory is compiled into agent-lib, and here it is omitted',
      ),
      'import.feeds[4]: there is no feed "gone", so it is omitted',
    ]);
  });
});

describe('[F1] context feeds of the original', () => {
  const feedOf = (feed: string, rest = ''): Loaded => load(`context_feeds: [${feed}]\n${rest}`);

  test.each([
    ['{type: internal, action: get_system_time}', 'system_clock'],
    ['{type: internal, action: get_datetime, params: {format: ISO8601, timezone: UTC}}', 'system_clock'],
    ['{type: internal, name: get_session_info}', 'session_info'],
    ['system_clock', 'system_clock'],
  ])('the source %s is %s', (source, name) => {
    const { agent, problems, warnings } = feedOf(`{id: f, type: on_demand, source: ${source}}`);
    expect(problems).toEqual([]);
    expect(agent?.feeds).toMatchObject([{ source: { type: 'internal', name } }]);
    expect(warnings).toEqual([expect.stringMatching(/^context_feeds\[0\]: understood: /)]);
  });

  test.each([
    ['{type: external, action: get_status}', 'switched off: a source outside of the system has no protocol here'],
    ['{type: internal, action: get_build_status}', 'switched off: "get_build_status" is not an internal source here'],
  ])('the source %s does not exist, and the agent loads', (source, message) => {
    const { agent, problems, warnings } = feedOf(
      `{id: f, source: ${source}}, {id: g, source: {type: internal, action: usage}}`,
    );
    expect(problems).toEqual([]);
    expect(agent?.feeds.map(({ id }) => id)).toEqual(['g']);
    expect(warnings).toEqual([expect.stringContaining(`context_feeds[0]: ${message}`)]);
  });

  test('a typing mistake is an error', () => {
    expect(feedOf('{id: f, source: {type: internal, action: sytem_clock}}').problems).toHaveLength(1);
  });

  test.each([
    ['{id: f, type: streaming, source: {type: internal, action: usage}}', { when: 'on_demand' }],
    [
      '{id: f, type: streaming, interval: 30, source: {type: internal, action: usage}}',
      { when: 'periodic', intervalMs: 30_000 },
    ],
    [
      '{id: f, type: on_demand, interval: 30, source: {type: internal, action: usage}}',
      { when: 'on_demand', cacheTtlMs: 30_000 },
    ],
    [
      '{id: f, source: {tool: echo, params: {text: a}}}',
      { source: { type: 'tool', name: 'echo', params: { text: 'a' } } },
    ],
    ['{id: f, type: on_demand, tool: echo}', { source: { type: 'tool', name: 'echo' } }],
    [
      '{id: f, cache: {enabled: true, ttl: 9}, error_handling: {on_error: use_default, default_value: x}, source: {type: internal, action: usage}}',
      { cacheTtlMs: 9_000, onError: 'use_default', defaultValue: 'x' },
    ],
  ])('%s', (feed, expected) => {
    const { agent, problems, warnings } = feedOf(feed, 'import: {tools: [echo]}');
    expect(problems).toEqual([]);
    expect(agent?.feeds).toMatchObject([expected]);
    expect(warnings).toEqual([expect.stringMatching(/^context_feeds\[0\]: understood: /)]);
  });

  test.each([
    ['true', { enabled: true }],
    ['"No"', { enabled: false }],
    ['"${FLAG:-yes}"', { enabled: true, enabledBy: '${FLAG:-yes}' }],
  ])('enabled: %s', (enabled, expected) => {
    const { agent, problems, warnings } = feedOf(
      `{id: f, enabled: ${enabled}, source: {type: internal, action: usage}}`,
    );
    expect([...problems, ...warnings]).toEqual([]);
    expect(agent?.feeds).toMatchObject([expected]);
  });

  test('another word in enabled is an error', () => {
    expect(feedOf('{id: f, enabled: maybe, source: {type: internal, action: usage}}').problems).toEqual([
      expect.stringContaining('must be true or false, or text with a ${VARIABLE}, found "maybe"'),
    ]);
  });
});
