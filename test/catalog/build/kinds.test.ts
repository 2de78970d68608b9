import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import type { LoadedManifests } from '../../../src/catalog/load.ts';
import { readFeed } from '../../../src/catalog/schema/feed.ts';
import { limits } from '../../../src/domain/limits.ts';
import { agent, load, problemsOf, relic, said, tool, warningsOf, workflow } from '../../support/manifests.ts';

describe('relics', () => {
  test.each([
    ['kv', ['get', 'set', 'delete', 'list', 'increment']],
    ['log', ['tail', 'append', 'range']],
    ['sql', ['query', 'execute']],
  ])('[R6] a %s store without endpoints has the standard endpoints', (store, names) => {
    const { catalog, problems } = load({ 'r.yaml': relic('r', `implementation: {type: edge, store: ${store}}`) });
    expect(problems).toEqual([]);
    expect(catalog.relic('r')).toMatchObject({
      implementation: { type: 'edge', store, ttlMs: null, quotaBytes: limits.relicQuotaBytes, schema: [] },
      scope: 'session',
      persistent: true,
      idleMs: limits.relicIdleMs,
    });
    expect(Object.keys(catalog.relic('r')?.endpoints ?? {})).toEqual(names);
  });

  test('[R6] a manifest selects standard endpoints, describes them, and sets the limits of the store', () => {
    const { catalog, problems } = load({
      'r.yaml': relic(
        'r',
        'implementation: {type: edge, store: kv, ttl: 2h, quota: 1Mi}\nscope: shared\nendpoints: {get: {summary: Reads a note., timeout: 3s}, set: {}}',
      ),
    });
    expect(problems).toEqual([]);
    expect(catalog.relic('r')).toMatchObject({
      implementation: { ttlMs: 7_200_000, quotaBytes: 1_048_576 },
      scope: 'shared',
      endpoints: {
        get: { summary: 'Reads a note.', timeoutMs: 3_000, effects: 'idempotent', parameters: { required: ['key'] } },
        set: { effects: 'idempotent' },
      },
    });
    expect(Object.keys(catalog.relic('r')?.endpoints ?? {})).toEqual(['get', 'set']);
  });

  test('[R5] a container relic declares its image, its endpoints and its health check', () => {
    const { catalog, problems, warnings } = load({
      'relics/r.yaml': relic(
        'r',
        `implementation:
  type: container
  build: {entrypoint: ./store/main.py, files: [./store/lib/db.py], requirements: {file: ./store/requirements.txt}}
  port: 9000
  health: /ready
  resources: {memory: 128Mi, cpu: 500m}
persistent: true
idle: 1m
endpoints:
  - {name: find, method: GET, path: "/entries/{key}", parameters: {key: string}}
  - {name: put, parameters: {key: string, value: {}}, effects: idempotent}`,
      ),
      'relics/store/main.py': 'main',
      'relics/store/lib/db.py': 'lib',
      'relics/store/requirements.txt': '# what it needs\nhttpx>=0.27\n\n',
    });
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
    expect(catalog.relic('r')).toMatchObject({
      implementation: {
        type: 'container',
        image: null,
        build: {
          base: 'python3',
          files: { 'main.py': 'main', 'lib/db.py': 'lib' },
          entrypoint: 'main.py',
          requirements: ['httpx>=0.27'],
        },
        port: 9000,
        health: { path: '/ready', intervalMs: limits.relicHealthMs, startMs: limits.relicStartMs },
        memoryMb: 128,
        cpus: 0.5,
      },
      persistent: true,
      idleMs: 60_000,
      endpoints: {
        find: { effects: 'idempotent', http: { method: 'GET', path: '/entries/{key}' } },
        put: { effects: 'idempotent', http: { method: 'POST', path: '/put' } },
      },
    });
  });

  test.each([
    [
      'implementation: {type: edge, store: kv}\nendpoints: [gett]',
      'a kv store has no endpoint "gett" (allowed: get, set, delete, list, increment). Did you mean get?',
    ],
    ['implementation: {type: edge, store: graph}', '"graph" is not allowed (allowed: kv, log, sql)'],
    ['implementation: {type: edge, store: kv, schema: [x]}', 'is allowed only for sql stores; this store is kv'],
    ['implementation: {type: container, image: x}', 'is missing: the endpoints of the service'],
    [
      'implementation: {type: container}\nendpoints: {a: {}}',
      'needs exactly one of "image" (a name) and "build" (its files)',
    ],
    ['implementation: {type: edge, store: kv}\nendpoints: [get, get]', 'another endpoint is already called "get"'],
  ])('[M1] %j is refused with a clear message', (rest, message) => {
    expect(problemsOf({ 'r.yaml': relic('r', rest) })).toEqual([expect.stringContaining(message)]);
  });
});

describe('workflows', () => {
  test('[M6] every field of a workflow reaches its definition', () => {
    const { catalog, problems, warnings } = load({
      'flows/w.yaml': workflow(
        'w',
        `trigger: {type: scheduled, cron: "0 9 * * 1-5", timezone: Europe/Berlin, inputs: {day: today}}
inputs: {url: string}
max_parallel_steps: 2
fail_fast: false
steps:
  - {name: get, type: tool, target: ../fetch.yaml, parameters: {url: $(trigger.url)}, timeout: 5s, retry_policy: {max_attempts: 2}, output_mapping: {body: text}}
  - {name: keep, type: relic, target: store.set, parameters: {key: x}, on_failure: {do: continue, steps: [{name: undo, type: relic, target: store, action: delete}]}}
  - {name: choose, type: conditional, condition: "steps.get.ok", steps: [{name: yes_, type: llm, parameters: {prompt: hi}}], else: [{name: no_, type: internal, target: clear_context}]}
  - {name: each, type: for_each, items: $(steps.get.list), concurrency: 3, depends_on: get, steps: [{name: one, type: tool, target: fetch}]}
  - {name: both, type: parallel, depends_on: [], steps: [{name: a, type: agent, target: helper}, {name: b, type: workflow, target: w, condition: 'trigger.url != ""'}]}
outputs: {text: steps.get.body, all: {source: $(steps.each)}}`,
      ),
      'fetch.yaml': tool('fetch'),
      'store.yaml': relic('store'),
      'helper.yaml': agent('helper'),
    });
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
    const resolved = catalog.workflow('w');
    expect(resolved?.workflow).toMatchObject({
      trigger: { type: 'scheduled', cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', inputs: { day: 'today' } },
      inputs: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] },
      imports: { tools: ['fetch'], agents: ['helper'], relics: ['store'], workflows: ['w'] },
      failFast: false,
      maxParallelSteps: 2,
      outputs: { text: 'steps.get.body', all: 'steps.each' },
      steps: [
        {
          name: 'get',
          type: 'tool',
          target: 'fetch',
          dependsOn: null,
          timeoutMs: 5_000,
          retry: { maxAttempts: 2 },
          onFailure: 'abort',
          outputMapping: { body: 'text' },
        },
        {
          name: 'keep',
          target: 'store',
          action: 'set',
          onFailure: 'continue',
          compensate: [{ name: 'undo', target: 'store', action: 'delete' }],
        },
        {
          name: 'choose',
          condition: 'steps.get.ok',
          steps: [{ name: 'yes_' }],
          otherwise: [{ name: 'no_', target: 'clear_context' }],
        },
        { name: 'each', items: '$(steps.get.list)', concurrency: 3, dependsOn: ['get'], steps: [{ target: 'fetch' }] },
        { name: 'both', dependsOn: [], steps: [{ target: 'helper' }, { target: 'w' }] },
      ],
    });
    expect([...(resolved?.tools.keys() ?? [])]).toEqual(['fetch']);
    expect([...(resolved?.relics.keys() ?? [])]).toEqual(['store']);
    expect(resolved?.agents.get('helper')).toMatchObject({ name: 'helper', summary: 'Something' });
  });

  test('[M6] a workflow without a trigger and inputs is started by calls and accepts any input', () => {
    const { catalog, problems } = load({ 'w.yaml': workflow('w') });
    expect(problems).toEqual([]);
    expect(catalog.workflow('w')?.workflow).toMatchObject({
      trigger: { type: 'manual' },
      inputs: { type: 'object', additionalProperties: true },
      failFast: true,
      maxParallelSteps: limits.maxParallelActions,
    });
  });

  test.each([
    [
      'steps: [{name: a, type: tool, target: fech}]',
      'steps[0].target: workflow "w" imports the tool "fech", which does not exist (nearest: fetch)',
    ],
    [
      'steps: [{name: a, type: llm}, {name: a, type: llm}]',
      'steps[1].name: another step in this list is already called "a"',
    ],
    [
      'steps: [{name: a, type: llm, depends_on: [bb]}, {name: b, type: llm}]',
      'steps[0].depends_on[0]: no step in this list is called "bb" (did you mean b?)',
    ],
    [
      'steps: [{name: a, type: llm, depends_on: [b]}, {name: b, type: llm, depends_on: [a]}]',
      'steps[0].depends_on: the steps a, b depend on each other',
    ],
    ['steps: [{name: a, type: conditional, steps: []}]', 'steps[0].condition: is missing: a CEL expression'],
    ['steps: [{name: a, type: for_each, steps: []}]', 'steps[0].items: is missing: the list, or a reference to one'],
    ['steps: [{name: a, type: internal, target: set_var}]', 'steps[0].target: "set_var" is not an internal action'],
    [
      'steps: [{name: a, type: llm}]\ntrigger: {type: scheduled, cron: "* *"}',
      'trigger.cron: "* *" is not a cron expression with five or six fields: it has 2 fields',
    ],
    [
      'steps: [{name: a, type: llm}]\ntrigger: {type: scheduled, cron: "0 99 * * *"}',
      'trigger.cron: "0 99 * * *" is not a cron expression with five or six fields',
    ],
    [
      'steps: [{name: a, type: llm}]\ntrigger: {type: scheduled, cron: "* * * * *", timezone: Mars/North}',
      'trigger.timezone: "Mars/North" is not an IANA time zone',
    ],
    [
      'steps: [{name: a, type: llm}]\ntrigger: {type: webhook, secret: PATH}',
      'trigger.secret: must be the name of a secret that begins with TOOL_',
    ],
    ['steps: []', 'steps: must be at least 1 items long'],
    [
      'steps: [{name: get, type: llm}, {name: a, type: llm, parameters: {prompt: "see $(steps.gett.text)"}}]',
      'w.yaml:5:75: steps[1].parameters.prompt: $(steps.gett.text): no visible step is called "gett" (did you mean get?)',
    ],
    [
      'steps: [{name: a, type: llm, condition: "steps.nothing.at.all > 1"}]',
      'steps[0].condition: $(steps.nothing.at.all): no visible step is called "nothing" (known: a)',
    ],
    [
      'steps: [{name: a, type: llm}, {name: b, type: llm, condition: "steps.a.size( >"}]',
      'steps[1].condition: is not a CEL condition, such as "steps.a.size() > 0": Unexpected token: GT',
    ],
    [
      'steps: [{name: a, type: llm}]\noutputs: {x: steps.b.text, y: {source: $(steps.c)}}',
      'outputs.y.source: $(steps.c): no visible step is called "c" (did you mean a?)',
    ],
    [
      'steps: [{name: get, type: llm}, {name: a, type: llm, parameters: {prompt: "see $(steps.gett[0].text)"}}]',
      'steps[1].parameters.prompt: $(steps.gett[0].text): no visible step is called "gett" (did you mean get?)',
    ],
    [
      'steps: [{name: e, type: for_each, items: [1], steps: [{name: one, type: llm}]}, {name: b, type: llm, parameters: {p: $(steps.one)}}]',
      'no visible step is called "one"',
    ],
    [
      'inputs: {url: string}\nsteps: [{name: a, type: llm, parameters: {prompt: $(trigger.uri)}}]',
      'steps[0].parameters.prompt: $(trigger.uri): the workflow has no input "uri" (did you mean url?)',
    ],
    [
      'steps: [{name: a, type: llm, parameters: {prompt: [$(item.x)]}}]',
      'steps[0].parameters.prompt[0]: $(item.x): item exists only in the steps of a for_each',
    ],
    [
      'steps: [{name: a, type: llm, parameters: {prompt: $(env.HOME)}}]',
      '$(env.HOME): "env" is unknown (known: steps, trigger, item, index)',
    ],
    ['steps: [{name: a, type: llm, parameters: {p: $(steps.a)}}]', 'steps[0].name: the step a depends on itself'],
    [
      'steps: [{name: g, type: parallel, steps: [{name: a, type: llm, parameters: {p: $(steps.g)}}]}]',
      'steps[0].name: the step g depends on itself',
    ],
    [
      'steps: [{name: a, type: llm}, {name: g, type: parallel, steps: [{name: a, type: llm}]}]',
      'steps[1].steps[0].name: the step "a" would have the same id',
    ],
    [
      'steps: [{name: g, type: parallel, steps: [{name: x, type: llm}]}, {name: g_gate, type: llm}]',
      'steps[1].name: the step "g" would have the same id',
    ],
    [
      'steps: [{name: l, type: loop, until: "true", steps: [{name: x, type: llm}]}, {name: l_gate_7, type: llm}]',
      'steps[1].name: the step "l" would have the same id',
    ],
    [
      `steps: [{name: ${'e'.repeat(40)}, type: for_each, items: [1], steps: [{name: ${'i'.repeat(30)}, type: llm}]}]`,
      'the ids of its actions would have up to 76 characters with the names of the enclosing steps (allowed: 64)',
    ],
    [
      'steps: [{name: a, type: llm, compensate: [{name: u, type: parallel, steps: []}]}]',
      'steps[0].compensate[0].type: compensation steps must be single actions, and parallel is a group',
    ],
  ])('[M1] %j is refused with a clear message', (rest, message) => {
    expect(problemsOf({ 'fetch.yaml': tool('fetch'), 'w.yaml': workflow('w', rest) }).join('\n')).toContain(message);
  });

  test('[M6] two branches may contain loops with the same name', () => {
    const loop = '[{name: l, type: loop, until: "true", steps: [{name: x, type: value, value: 1}]}]';
    const rest = `steps: [{name: c, type: conditional, condition: "true", steps: ${loop}, else: ${loop}}]`;
    expect(problemsOf({ 'w.yaml': workflow('w', rest) })).toEqual([]);
  });
});

describe('[F1] [S7] sources of feeds', () => {
  const watcher = (feed: string, imports: string): string =>
    agent('watcher', `import: ${imports}\ncontext_feeds:\n  - ${feed}`);
  const watched = (feed: string, imports: string, effects = ''): LoadedManifests =>
    load({
      'a.yaml': watcher(feed, imports),
      'store.yaml': relic('store'),
      'fetch.yaml': tool('fetch', effects),
      'flow.yaml': workflow('flow'),
    });

  test.each([
    ['{id: f, type: periodic, source: {type: tool, name: fetch}}', '{tools: [fetch]}', 'the tool "fetch" has unsafe'],
    [
      '{id: f, type: periodic, source: {type: relic, name: store.increment}}',
      '{relics: [store]}',
      'the relic "store" has unsafe effects',
    ],
    [
      '{id: f, type: periodic, source: {type: workflow, name: flow}}',
      '{workflows: [flow]}',
      'the workflow "flow" has unsafe effects, and a periodic feed would repeat them, so the feed is switched off; correct its declared effects, or set allow_unsafe: true in the feed',
    ],
  ])('%s is switched off with a warning', (feed, imports, message) => {
    const { catalog, problems, warnings } = watched(feed, imports);
    expect(problems.map(formatProblem)).toEqual([]);
    expect(warnings.map(formatProblem)).toEqual([expect.stringContaining(message)]);
    expect(catalog.agent('watcher')?.agent.feeds).toMatchObject([{ id: 'f', when: 'periodic', enabled: false }]);
  });

  test('a variable does not switch such a feed on', () => {
    const feed = '{id: f, type: periodic, enabled: "${ON:-true}", source: {type: tool, name: fetch}}';
    const { catalog } = watched(feed, '{tools: [fetch]}');
    expect(catalog.agent('watcher')?.agent.feeds[0]).toMatchObject({ enabled: false });
    expect(catalog.agent('watcher')?.agent.feeds[0]).not.toHaveProperty('enabledBy');
  });

  test('allow_unsafe is refused for a feed that is not periodic', () => {
    const feed = '{id: f, allow_unsafe: true, source: {type: internal, name: usage}}';
    expect(problemsOf({ 'a.yaml': watcher(feed, '{}') })).toEqual([
      expect.stringContaining('is allowed only for periodic feeds'),
    ]);
  });

  test.each([
    ['{operation: string}', '"status", understood as its parameter operation'],
    ['{q: string}', 'has no effect, because the tool "fetch" has no parameter "action" or "operation"; write params'],
  ])('[F1] the action of a tool with the parameters %s', (parameters, message) => {
    const { catalog, problems, warnings } = load({
      'a.yaml': watcher('{id: f, source: {type: tool, name: fetch, action: status}}', '{tools: [fetch]}'),
      'fetch.yaml': tool('fetch', `parameters: ${parameters}`),
    });
    expect(problems).toEqual([]);
    expect(warnings.map(formatProblem)).toEqual([expect.stringContaining(message)]);
    expect(catalog.agent('watcher')?.agent.feeds).toHaveLength(1);
  });

  test.each([
    ['{id: f, type: periodic, source: {type: tool, name: fetch}}', 'effects: idempotent\n'],
    ['{id: f, type: periodic, allow_unsafe: true, source: {type: tool, name: fetch}}', ''],
    ['{id: f, type: periodic, source: {type: relic, name: store}}', ''],
    ['{id: f, source: {type: tool, name: fetch}}', ''],
  ])('%s loads with a tool of %j', (feed, effects) => {
    const loaded = watched(feed, '{tools: [fetch], relics: [store]}', effects);
    expect(said(loaded)).toEqual([]);
    expect(loaded.catalog.agent('watcher')?.agent.feeds).toHaveLength(1);
  });

  test('a source that the agent does not import gives a warning', () => {
    const { catalog, warnings } = watched('{id: f, source: {type: tool, name: fech}}', '{tools: [fetch]}');
    expect(warnings.map(formatProblem)).toEqual([
      'a.yaml:8:40: context_feeds[0].source.name: the agent does not import the tool "fech", so the feed will have no value (did you mean fetch?)',
    ]);
    expect(catalog.agent('watcher')).not.toBeNull();
  });
});

describe('names that a workflow can use', () => {
  test.each([
    "steps: [{name: a, type: llm}, {name: c, type: conditional, condition: \"steps.a.size() > 0 && 'steps.x' != ''\", steps: [{name: w, type: llm}], else: [{name: w, type: llm}]}, {name: z, type: llm, parameters: {p: $(steps.w)}}]\noutputs: {w: steps.w}",
    'steps: [{name: p, type: parallel, steps: [{name: a, type: llm, depends_on: [b]}, {name: b, type: llm}]}, {name: z, type: llm, parameters: {p: $(steps.p.a)}}]',
    'steps: [{name: a, type: llm}, {name: e, type: for_each, items: $(steps.a.list), steps: [{name: one, type: llm, parameters: {p: "$(item.x) $(index) $(steps.a)"}}, {name: two, type: llm, parameters: {p: $(steps.one)}}]}]',
    'steps: [{name: a, type: llm, compensate: [{name: undo, type: llm, parameters: {p: $(steps.a), q: $(trigger.anything)}}]}]',
    'steps: [{name: a, type: llm, parameters: {prompt: "$5 and $(date) cost $x"}}]',
  ])('[M6] %j loads', (rest) => {
    expect(problemsOf({ 'w.yaml': workflow('w', rest) })).toEqual([]);
  });
});

describe('feeds, memory and secrets of agents', () => {
  test('[F1] every field of a feed reaches its definition', () => {
    const { catalog, problems, warnings } = load({
      'a.yaml': agent(
        'a',
        `import: {relics: [logs], tools: [monitor]}
memory: {max_turns: 20, summarize_after: 40}
environment: {secrets: [TOOL_KEY, TOOL_KEY]}
context_feeds:
  - {id: now, type: on_demand, source: {type: internal, action: system_clock, params: {timezone: UTC}}}
  - {id: load, type: periodic, interval: 30, max_tokens: 50, enabled: false, source: {type: tool, name: monitor}, on_error: skip}
  - {id: errors, type: relic, cache_ttl: 1m, source: {name: logs, params: {filter: ERROR}}, default: none}`,
      ),
      'logs.yaml': relic('logs', 'implementation: {type: edge, store: log}'),
      'monitor.yaml': tool('monitor', 'effects: pure'),
    });
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
    expect(catalog.agent('a')?.agent).toMatchObject({
      memory: { maxTurns: 20, summarizeAfter: 40 },
      secrets: ['TOOL_KEY'],
      feeds: [
        {
          id: 'now',
          when: 'on_demand',
          intervalMs: null,
          cacheTtlMs: 0,
          maxTokens: limits.feedTokens,
          enabled: true,
          source: { type: 'internal', name: 'system_clock', action: null, params: { timezone: 'UTC' } },
          onError: 'use_cached',
          defaultValue: null,
        },
        {
          id: 'load',
          when: 'periodic',
          intervalMs: 30_000,
          cacheTtlMs: 30_000,
          maxTokens: 50,
          enabled: false,
          onError: 'skip',
        },
        {
          id: 'errors',
          when: 'on_demand',
          cacheTtlMs: 60_000,
          // default: the first endpoint
          source: { type: 'relic', name: 'logs', action: 'tail', params: { filter: 'ERROR' } },
          onError: 'use_default',
          defaultValue: 'none',
        },
      ],
    });
  });

  test.each(['internal', 'relic', 'tool', 'workflow', 'llm'] as const)(
    '[F1] the type %s means on_demand from that source',
    (type) => {
      const name = type === 'internal' ? 'usage' : 'thing';
      expect(
        readFeed({ id: 'x', type, source: { name, action: type === 'internal' ? 'usage' : 'get' } }),
      ).toMatchObject({
        feed: { when: 'on_demand', intervalMs: null, source: { type, name } },
      });
    },
  );

  test.each([
    [{ id: 'a b', type: 'internal' }, 'id: must be 1 to 64 characters without white space'],
    [{ id: 'a' }, 'source: is missing (allowed: tool, agent, relic, workflow, llm, internal)'],
    [
      { id: 'a', type: 'internal', source: { action: 'clock' } },
      'source.action: "clock" is not an internal source (allowed: system_clock, random,',
    ],
    [
      { id: 'a', type: 'tool', source: { type: 'relic', name: 'x' } },
      "source.type: is relic, but the feed's type is tool",
    ],
    [{ id: 'a', type: 'tool', source: {} }, 'source.name: is missing: the tool that provides the value'],
    [
      { id: 'a', type: 'on_demand', interval: 5, source: { type: 'internal', name: 'usage' } },
      'interval: is allowed only for periodic feeds',
    ],
  ])('[F1] %j is refused with a clear message', (written, message) => {
    const read = readFeed(written);
    expect('issues' in read ? read.issues.join('\n') : read).toContain(message);
  });

  test('[F1] two feeds of an agent cannot have the same id', () => {
    const feed = '{id: now, type: internal, source: {name: usage}}';
    expect(problemsOf({ 'a.yaml': agent('a', `context_feeds: [${feed}, ${feed}]`) })).toEqual([
      'a.yaml:6:72: context_feeds[1].id: another feed is already called "now"',
    ]);
  });

  test('[X3] a manifest can name only secrets that begin with TOOL_', () => {
    expect(problemsOf({ 'a.yaml': agent('a', 'environment: {secrets: [LLM_API_KEY]}') })).toEqual([
      'a.yaml:6:25: environment.secrets[0]: must be the name of a secret that begins with TOOL_, found string "LLM_API_KEY"',
    ]);
  });
});

test('[R2] a manifest can require a sandbox level and runner labels', () => {
  const needs = '{sandbox: docker, labels: [gpu, gpu, big.1]}';
  const { catalog, problems } = load({
    'tools/s.yaml': tool('s', `implementation: {type: script, runtime: shell, script: id, resources: ${needs}}`),
    'tools/c.yaml': tool('c', 'implementation: {type: container, image: busybox, resources: {labels: []}}'),
    'relics/r.yaml': relic(
      'r',
      'implementation: {type: container, image: x, resources: {labels: [disk]}}\nendpoints: {get: {}}',
    ),
    'agents/a.yaml': agent('a', `environment: {runner: ${needs}}`),
  });
  expect(problems.map(formatProblem)).toEqual([]);
  const asked = { sandbox: 'docker', labels: ['gpu', 'big.1'] };
  expect(catalog.tool('s')?.implementation).toMatchObject(asked);
  expect(catalog.tool('c')?.implementation).not.toHaveProperty('labels');
  expect(catalog.relic('r')?.implementation).toMatchObject({ labels: ['disk'] });
  expect(catalog.agent('a')?.agent.runner).toEqual(asked);
  const unknown = tool('s', 'implementation: {type: script, runtime: shell, script: id, resources: {sandbox: vm}}');
  expect(problemsOf({ 's.yaml': unknown })[0]).toContain('implementation.resources.sandbox');
});

test('[M3] a container tool can be built from the files beside its manifest, with its own limits', () => {
  const { catalog, problems } = load({
    'tools/t.yaml': tool(
      't',
      'implementation: {type: container, build: {entrypoint: ./t/run.sh, base: shell}, resources: {memory: 64, cpu: 0.5}}',
    ),
    'tools/t/run.sh': 'echo hi',
  });
  expect(problems).toEqual([]);
  expect(catalog.tool('t')?.implementation).toEqual({
    type: 'container',
    image: null,
    build: { base: 'shell', files: { 'run.sh': 'echo hi' }, entrypoint: 'run.sh', requirements: [] },
    memoryMb: 64,
    cpus: 0.5,
  });
});

describe('workflows that start themselves', () => {
  const starts = (name: string, target: string, more = ''): string =>
    workflow(name, `import: {workflows: [${target}]}\nsteps: [{name: s, type: workflow, target: ${target}${more}}]`);

  test('[M6] a workflow that always starts itself, directly or through others, gives a warning', () => {
    expect(warningsOf({ 'w.yaml': starts('w', 'w') })).toEqual([
      expect.stringContaining('the workflow always starts itself (w -> w)'),
    ]);
    const three = { 'a.yaml': starts('a', 'b'), 'b.yaml': starts('b', 'c'), 'c.yaml': starts('c', 'a') };
    expect(warningsOf(three).join('\n')).toContain('always starts itself (a -> b -> c -> a)');
    const within = workflow(
      'w',
      'import: {workflows: [w]}\nsteps: [{name: p, type: parallel, steps: [{name: s, type: workflow, target: w}]}]',
    );
    expect(warningsOf({ 'w.yaml': within })).toHaveLength(1);
  });

  test('[M6] a workflow that starts itself under a condition gives no warning', () => {
    expect(warningsOf({ 'w.yaml': starts('w', 'w', ', condition: "trigger.n > 0"') })).toEqual([]);
    expect(warningsOf({ 'a.yaml': starts('a', 'b'), 'b.yaml': starts('b', 'a', ', condition: "true"') })).toEqual([]);
  });
});

test('[R6] the quota and the schema statements of an edge relic are limited', () => {
  expect(problemsOf({ 'r.yaml': relic('r', 'implementation: {type: edge, store: kv, quota: 10G}') })).toEqual([
    expect.stringContaining('exceeds the maximum size of an edge relic (256 MiB)'),
  ]);
  const schema = Array.from({ length: limits.relicSchemaStatements + 1 }, () => 'DELETE FROM t').join(', ');
  expect(problemsOf({ 'r.yaml': relic('r', `implementation: {type: edge, store: sql, schema: [${schema}]}`) })).toEqual(
    [expect.stringContaining(`(allowed: ${limits.relicSchemaStatements})`)],
  );
});
