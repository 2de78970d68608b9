/** What a model is asked, and with which limits (L5, P17, S11, S12, I). */
import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ModelRequest } from '../../../src/domain/ports/model.ts';
import { estimateTokens } from '../../../src/domain/tokens.ts';
import { withoutCleared } from '../../../src/engine/generation/conversation.ts';
import { modelRequest } from '../../../src/engine/generation/model-request.ts';
import type { ActionReport, ChatTurn } from '../../../src/protocol/prompt/chat-turn.ts';
import { seededTurn } from '../../../src/protocol/prompt/seeded-turn.ts';
import { toolOf } from '../../support/definitions.ts';

const head = (kind: string, name: string): string =>
  `kind: ${kind}\nversion: 1\nname: ${name}\nsummary: ${name} does\n`;
const { catalog } = loadManifests(
  Object.entries({
    'a.yaml': `${head('Agent', 'keeper')}persona: x\nimport: {agents: [helper], relics: [notes], workflows: [nightly]}\n`,
    'b.yaml': `${head('Agent', 'helper')}persona: x\n`,
    'n.yaml': `${head('Relic', 'notes')}implementation: {type: edge, store: kv}\nendpoints: {get: {summary: reads}, increment: {summary: adds}}\n`,
    'w.yaml': `${head('Workflow', 'nightly')}steps: [{name: s, type: llm}]\n`,
  }).map(([path, text]) => ({ path, text })),
);

function keeper(changes: (agent: AgentDefinition) => Partial<AgentDefinition> = () => ({})): ResolvedAgent {
  const resolved = catalog.agent('keeper');
  if (resolved === null) throw new Error('the catalogue has no keeper');
  const thing = toolOf({ type: 'builtin', entrypoint: 'echo' }, { summary: 'a thing' });
  return {
    ...resolved,
    agent: { ...resolved.agent, ...changes(resolved.agent) },
    tools: new Map([[thing.name, thing]]),
  };
}

const TURN: ChatTurn = { user: 'now', generations: [] };
const { signal } = new AbortController();
const requestOf = (given: Partial<Parameters<typeof modelRequest>[0]> = {}): ModelRequest =>
  modelRequest({
    resolved: keeper(),
    history: [],
    turn: TURN,
    feeds: [],
    last: false,
    tokensLeft: null,
    signal,
    ...given,
  });
const withParameters = (parameters: AgentDefinition['engine']['parameters']): ResolvedAgent =>
  keeper(({ engine }) => ({ engine: { ...engine, parameters } }));
const promptTokens = ({ messages }: ModelRequest): number =>
  messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);

describe('[L5] a model request', () => {
  test('has the prompt, the question, and no limits of its own', () => {
    const request = requestOf({ resolved: withParameters({}) });
    expect(request.messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(request.messages[1]?.content).toContain('now');
    expect(request).toMatchObject({ model: null, temperature: null, maxTokens: null, extra: {}, signal });
    expect(Object.hasOwn(request, 'tools')).toBe(false);
    expect(Object.hasOwn(request, 'answerOnly')).toBe(false);
  });

  test('has the parameters of the manifest; values that are not numbers are passed through or left out', () => {
    const parameters = { temperature: 0.3, max_tokens: 77, seed: 1, stop: ['x'] };
    expect(requestOf({ resolved: withParameters(parameters) })).toMatchObject({
      temperature: 0.3,
      maxTokens: 77,
      extra: { seed: 1, stop: ['x'] },
    });
    expect(Object.keys(requestOf({ resolved: withParameters(parameters) }).extra)).toEqual(['seed', 'stop']);
    expect(requestOf({ resolved: withParameters({ temperature: '0.3', max_tokens: '77' }) })).toMatchObject({
      temperature: null,
      maxTokens: null,
      extra: {},
    });
  });

  test('[L3] describes what the agent may use', () => {
    const { agent } = requestOf();

    expect(agent).toMatchObject({
      name: 'keeper',
      tools: [{ name: 'thing', summary: 'a thing' }],
      capabilities: [],
      form: 'full',
      agents: ['helper'],
      workflows: [{ name: 'nightly', summary: 'nightly does' }],
      relics: [
        { name: 'notes.get', summary: 'reads' },
        { name: 'notes.increment', summary: 'adds' },
      ],
    });
    for (const { parameters } of [...(agent?.tools ?? []), ...(agent?.workflows ?? []), ...(agent?.relics ?? [])]) {
      expect(parameters).toEqual(expect.objectContaining({ type: 'object' }));
    }
  });

  test('shows the latest turns only', () => {
    const history = Array.from({ length: limits.historyTurns + 1 }, (_, at): ChatTurn => ({
      user: `turn ${at}.`,
      generations: [{ text: 'ok', results: [] }],
      answer: 'ok',
    }));
    const resolved = keeper(() => ({ memory: { maxTurns: null, summarizeAfter: null } }));
    const users = requestOf({ history, resolved }).messages.filter(({ role }) => role === 'user');
    expect(users).toHaveLength(limits.historyTurns + 1);
    expect(users[0]?.content).toBe('turn 1.');
    expect(users.at(-1)?.content).toContain('now');
  });

  test('[F2] shows the feeds', () => {
    const feeds = [{ id: 'weather', value: 'rain', ageMs: 0 }];
    expect(requestOf({ feeds }).messages.at(-1)?.content).toContain('<context_feed id="weather" age="0s">\nrain');
  });
});

function noFile(): never {
  throw new Error('the history has no files');
}

const SEEDED = seededTurn(
  [
    { role: 'user', content: 'How warm is Oslo?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: '3' },
    { role: 'assistant', content: 'Three degrees.' },
  ],
  noFile,
);

describe('[P17] functions are declared', () => {
  const tools = keeper(({ protocol }) => ({ protocol: { ...protocol, dialect: 'tool_calls' } }));
  const call = { id: 'c', name: 'nightly', arguments: '{}', actionId: 'c', ordinal: 0, type: 'workflow' } as const;
  const called: ChatTurn = { user: 'before', generations: [{ text: '', calls: [call], results: [] }] };

  test.each([
    ['if the manifest says so', { resolved: tools }, true],
    ['if the conversation contains a call', { history: [called] }, true],
    ['not otherwise', {}, false],
  ])('%s', (_name, given, declared) => {
    const request = requestOf(given);
    expect(request.tools?.some(({ name }) => name === 'nightly') ?? false).toBe(declared);
    expect(request.answerOnly).toBe(declared ? false : undefined);
  });

  test.each([
    ['tool_calls', ['weather', 'nightly'], 'use the function recall'],
    ['auto', ['nightly'], 'recall with {"turns"'],
  ] as const)(
    '[C1] [C10] for %s, the calls of a seeded history are %j, and earlier turns: %s',
    (dialect, names, how) => {
      const memory = { maxTurns: null, summarizeAfter: 2 };
      const resolved = keeper(({ protocol }) => ({ protocol: { ...protocol, dialect }, memory }));
      const said: ChatTurn = { user: 'hi', generations: [{ text: 'ok', results: [] }], answer: 'ok' };
      const { messages } = requestOf({ resolved, history: [said, said, SEEDED, called] });
      expect(messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ name }) => name))).toEqual(names);
      expect(messages[1]?.content).toContain(how);
    },
  );

  test('[S11] and may not be called in the last generation', () => {
    const request = requestOf({ resolved: tools, last: true });
    expect(request).toMatchObject({ answerOnly: true, maxTokens: limits.lastGenerationTokens });
    expect(request.messages.at(-1)?.content).toContain('This is the last generation');
  });
});

describe('[P17] [C1] an agent without functions', () => {
  const bare = (dialect: AgentDefinition['protocol']['dialect']): ResolvedAgent => ({
    ...keeper((agent) => ({
      protocol: { ...agent.protocol, dialect },
      internalActions: { ...agent.internalActions, enabled: false },
      imports: { tools: [], agents: [], relics: [], workflows: [] },
      capabilities: [],
    })),
    tools: new Map(),
  });
  const call = { id: 'c', name: 'look', arguments: '{', actionId: 'c', ordinal: 0, type: 'tool' } as const;
  const refused: ActionReport = {
    id: 'c',
    ordinal: 0,
    name: 'look',
    status: 'rejected',
    ms: null,
    note: 'no such tool',
  };
  const own: ChatTurn = { user: 'go', generations: [{ text: 'Looking.', calls: [call], results: [refused] }] };

  test.each(['tool_calls', 'auto', 'protocol'] as const)(
    'has neither calls nor messages of tools in its requests: endpoints refuse them (%s)',
    (dialect) => {
      const request = requestOf({ resolved: bare(dialect), history: [SEEDED, own], turn: own });
      expect(Object.hasOwn(request, 'tools')).toBe(false);
      expect(Object.hasOwn(request, 'answerOnly')).toBe(false);
      expect(request.messages.flatMap(({ toolCalls = [] }) => toolCalls)).toEqual([]);
      expect(request.messages.map(({ role }) => role)).not.toContain('tool');
      const text = request.messages.map(({ content }) => content).join('\n');
      expect(text).toContain('<action type="tool" id="a" mode="async">');
      expect(text).toContain('<action_result id="a" name="weather" status="completed">\n3\n');
      // Why a call of its own did not run.
      expect(text.match(/no such tool/g)).toHaveLength(2);
    },
  );

  test('shows a call whose tool was of an earlier message only', () => {
    const done: ActionReport = { id: 'c', ordinal: 0, name: 'look', status: 'completed', ms: 3, output: 'a tree' };
    const earlier: ChatTurn = {
      user: 'before',
      generations: [{ text: '', calls: [{ ...call, arguments: '{"x":1}' }], results: [done] }],
      answer: 'A tree.',
    };
    const request = requestOf({ resolved: bare('tool_calls'), history: [earlier] });
    expect(request.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(request.messages[2]?.content).toBe(
      '<action type="tool" id="c" mode="async">\n{"name":"look","parameters":{"x":1}}\n</action>',
    );
    expect(request.messages[3]?.content).toContain('a tree');
  });
});

describe('[S12] a generation may write', () => {
  test.each([
    ['what is left without its prompt', {}, 1_000, 1_000],
    ['what it wishes, if that is less', { max_tokens: 400 }, 1_000, 400],
    ['what is left, if it wishes more', { max_tokens: 4_000 }, 1_000, 1_000],
    ['enough for an answer in any case', {}, -5_000, limits.leastGenerationTokens],
    ['as much as it wishes without a budget', { max_tokens: 4_000 }, null, 4_000],
  ])('%s', (_name, parameters, left, expected) => {
    const resolved = withParameters(parameters);
    const tokensLeft = left === null ? null : left + promptTokens(requestOf({ resolved }));
    expect(requestOf({ resolved, tokensLeft }).maxTokens).toBe(expected);
  });
});

describe('[I] results from before the context was cleared', () => {
  const report = (id: string, changes: Partial<ActionReport> = {}): ActionReport => ({
    id,
    name: 'echo',
    status: 'completed',
    ms: 1,
    output: id,
    ...changes,
  });
  const clear = report('clear', { name: 'clear_context', output: null });
  const turn = (...generations: readonly (readonly ActionReport[])[]): ChatTurn => ({
    user: 'q',
    generations: generations.map((results) => ({ text: 't', results })),
  });
  const outputs = (turns: readonly ChatTurn[]): unknown[] =>
    withoutCleared(turns).map(({ generations }) =>
      generations.map(({ results }) => results.map(({ output, note }) => output ?? note ?? null)),
    );

  test('are left out, those of the generation that cleared it and later ones are not', () => {
    const turns = [
      turn(['a', 'b'].map((id) => report(id))),
      turn([report('c')], [report('d'), clear], [report('e')]),
      turn([report('f')]),
    ];
    expect(outputs(turns)).toEqual([[['[cleared]', '[cleared]']], [['[cleared]'], ['d', null], ['e']], [['f']]]);
    expect(withoutCleared(turns)[1]).toMatchObject({ user: 'q', generations: [{ text: 't' }, {}, {}] });
    expect(turns[0]?.generations[0]?.results[0]?.output).toBe('a');
  });

  test('are left out up to the last time that it was cleared', () => {
    expect(outputs([turn([clear], [report('a')], [clear], [report('b')]), turn([report('c')], [clear])])).toEqual([
      [['[cleared]'], ['[cleared]'], ['[cleared]'], ['[cleared]']],
      [['[cleared]'], [null]],
    ]);
  });

  test('keep why there is no output', () => {
    const failed = report('a', { status: 'failed', output: undefined as never, note: 'boom' });
    expect(outputs([turn([failed]), turn([clear])])).toEqual([[['boom']], [[null]]]);
  });

  test('stay if it was not cleared: not by a failed action, and not by another one of this name', () => {
    const turns = [
      turn([report('a')]),
      turn([report('x', { name: 'clear_context', status: 'failed' })]),
      turn([report('y', { name: 'set_variable' }), report('z', { name: null })]),
    ];
    expect(withoutCleared(turns)).toBe(turns);
  });

  test('are not in the request', () => {
    const history = [turn([report('secret')]), turn([clear])];
    const text = JSON.stringify(requestOf({ history }).messages);
    expect(text).toContain('[cleared]');
    expect(text).not.toContain('\\nsecret\\n');
    const current = JSON.stringify(requestOf({ turn: turn([report('secret')], [clear]) }).messages);
    expect(current).toContain('[cleared]');
    expect(current).not.toContain('\\nsecret\\n');
  });
});
