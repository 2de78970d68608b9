import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { DEFAULT_PROTOCOL } from '../../../src/domain/manifests/agent.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { policyOf } from '../../../src/engine/actions/action-policy.ts';
import { buildGrammar } from '../../../src/protocol/grammar/grammar.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { promptExamples, renderAction } from '../../../src/protocol/prompt/examples.ts';
import { shownTools } from '../../../src/protocol/prompt/shown-tools.ts';
import { demoText } from '../../support/demo-text.ts';
import { agentOf, largeTool, largeTools } from '../../support/many-tools.ts';
import { engineFor } from '../../support/xgrammar.ts';
import type { Engine } from '../../support/xgrammar.ts';

type Form = 'full' | 'compact';
const FORMS: readonly Form[] = ['full', 'compact'];
const TEXTS = 40;

function shipped(name: string): ResolvedAgent {
  const found = bundled.agent(name);
  if (found === null) throw new Error(`no agent ${name}`);
  return found;
}

const ASSISTANT = shipped('assistant');

function tool(name: string, parameters: JsonObject): ToolDefinition {
  const template = [...shipped('assistant').tools.values()][0];
  if (template === undefined) throw new Error('the assistant has no tool');
  return { ...template, name, parameters };
}

function agentWith(tools: readonly ToolDefinition[], overrides: Partial<AgentDefinition> = {}): ResolvedAgent {
  const { agent } = shipped('assistant');
  const imports = { tools: tools.map(({ name }) => name), agents: [], relics: [], workflows: [], ...overrides.imports };
  return {
    agent: {
      ...agent,
      name: 'tester',
      protocol: DEFAULT_PROTOCOL,
      capabilities: [],
      internalActions: { enabled: false, allowed: null, blocked: [] },
      ...overrides,
      imports,
    },
    tools: new Map(tools.map((one) => [one.name, one])),
    relics: new Map(),
    workflows: new Map(),
    agents: new Map(),
    knownNames: { tool: imports.tools, agent: imports.agents, relic: imports.relics, workflow: imports.workflows },
  };
}

const ODD_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    // each of these is also a field of an action
    name: { type: 'string', minLength: 2, maxLength: 5 },
    parameters: { type: 'object', properties: { timeout: { type: 'integer' } }, additionalProperties: false },
    level: { enum: ['low', 'a "quoted" one', '</action>', '$x', 3, null, { deep: [1] }] },
    fixed: { const: 'only this' },
    ratio: { type: 'number', minimum: 0.05, maximum: 0.95 },
    offset: { type: 'number', exclusiveMinimum: -12.5, maximum: 3 },
    year: { type: 'integer', minimum: 1987, maximum: 2031 },
    below: { type: 'integer', exclusiveMaximum: -7 },
    tags: { type: 'array', items: { type: 'string', maxLength: 3 }, minItems: 1, maxItems: 3 },
    either: { anyOf: [{ type: 'boolean' }, { type: 'object', required: ['x'], properties: { x: { type: 'null' } } }] },
    maybe: { type: ['number', 'null'] },
    tree: { $ref: '#/$defs/node' },
    both: {
      allOf: [
        { properties: { a: { type: 'integer' }, b: { type: 'string' } }, additionalProperties: false },
        { properties: { a: { minimum: 5 }, c: {} }, required: ['a'] },
      ],
    },
    labels: {
      type: 'object',
      additionalProperties: { type: 'integer', minimum: 0 },
      minProperties: 1,
      maxProperties: 3,
    },
  },
  required: ['name', 'year'],
  additionalProperties: { type: 'boolean' },
  $defs: {
    node: {
      type: 'object',
      properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['value'],
      additionalProperties: false,
    },
  },
};

/** An agent with all abilities, and tools with the most unusual names and schemas that manifests allow. */
const EVERYTHING = agentWith(
  [
    tool('odd', ODD_SCHEMA),
    tool('a_b', { type: 'object', properties: {}, additionalProperties: false }),
    tool('a-b', { type: 'object', properties: { c: { type: 'string' } }, additionalProperties: false }),
    tool('A_B', { type: 'object' }),
    tool('names', {
      type: 'object',
      properties: Object.fromEntries(['a"b', 'a\\', 'ü', '😀x', 'a-', '^'].map((name) => [name, { type: 'integer' }])),
      additionalProperties: { type: 'null' },
    }),
    tool('open', { type: 'object', properties: { id: {} }, additionalProperties: true }),
  ],
  {
    name: 'everything',
    capabilities: ['python', 'shell', 'docker'],
    internalActions: { enabled: true, allowed: null, blocked: ['clear_context'] },
    imports: { tools: [], agents: ['navigator', 'cook'], relics: ['log'], workflows: ['voyage'] },
  },
);
const AGENTS = new Map([
  ['assistant', shipped('assistant')],
  ['research_orchestrator', shipped('research_orchestrator')],
  ['archivist', shipped('archivist')],
  ['everything', EVERYTHING],
]);

function parse(text: string): ProtocolEvent[] {
  const parser = createParser({ json: 'strict', actInReasoning: false });
  return [...parser.feed(text), ...parser.end()];
}

const engines = new Map<string, Promise<Engine>>();

/** Cached, because compiling takes most of the time. */
function engine(resolved: ResolvedAgent, form: Form): Promise<Engine> {
  const { text } = buildGrammar(resolved, { format: 'gbnf', form });
  const known = engines.get(text) ?? engineFor(text);
  engines.set(text, known);
  return known;
}

describe.each([...AGENTS.keys()])('the grammar of %s', (name) => {
  const resolved = AGENTS.get(name) ?? shipped(name);

  test.each(FORMS)(
    '[P18] texts that XGrammar generates from it parse without a warning and use only the agent’s names, %s form',
    async (form) => {
      const { write } = await engine(resolved, form);
      for (let seed = 0; seed < TEXTS; seed += 1) {
        const text = await write(seed);
        const events = parse(text);
        const context = `seed ${seed}: ${JSON.stringify(text)}`;
        const faults = events.filter((event) =>
          event.type === 'action_rejected'
            ? event.rejection.code !== 'duplicate_id'
            : event.type === 'warning' || event.type === 'text',
        );
        expect(faults, context).toEqual([]);
        expect(
          events.some(({ type }) => type === 'response_completed' || type === 'action_declared'),
          context,
        ).toBe(true);
        for (const event of events) {
          if (event.type !== 'action_declared') continue;
          expect(policyOf(event.action, resolved, new Map()).refusal, context).toBeNull();
        }
      }
    },
  );
});

/** Fails with the position at which the engine refuses the text. */
function expectAccepted({ refusal }: Engine, text: string): void {
  const stopped = refusal(text);
  expect(
    stopped,
    stopped === null ? '' : `…${text.slice(Math.max(0, stopped - 60), stopped)}⟦${text.slice(stopped, stopped + 20)}`,
  ).toBeNull();
}

/** The invented tools of the prompt's examples, as the examples use them. */
const MADE_UP = agentWith(
  [
    tool('weather', { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
    tool('subtract', { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } }),
    tool('tickets', { type: 'object', properties: { state: { type: 'string' } } }),
  ],
  {
    capabilities: ['python', 'shell'],
    imports: {
      tools: ['weather', 'subtract', 'tickets'],
      agents: ['writer'],
      relics: ['notes'],
      workflows: ['book_room'],
    },
    internalActions: { enabled: true, allowed: null, blocked: [] },
  },
);

describe('the grammar accepts', () => {
  test.each(FORMS)('[L4] every example of the prompt, %s form', async (form) => {
    const rest = { variables: true, feeds: true, agents: true, relics: true, workflows: true };
    const examples = [
      { ...rest, python: true, shell: true },
      { ...rest, python: false, shell: true, variables: false },
      { ...rest, python: false, shell: false },
    ].flatMap((needs) => promptExamples({ form, ...needs }));
    const texts = examples.flatMap(({ outputs }) => outputs.map(({ text }) => text));
    for (const text of texts) expectAccepted(await engine(MADE_UP, form), text);
  });

  test.each(FORMS)('[L3] the output of the demo model, %s form', async (form) => {
    const agent = {
      name: 'assistant',
      tools: [...ASSISTANT.tools.values()],
      capabilities: ASSISTANT.agent.capabilities,
      form,
    };
    for (const content of [
      'compute 2**200 in python and list the files in shell at the same time, then sum it up',
      'what is 17 * 23 + 4',
      'fetch https://example.com and the headings of https://example.com and show progress',
      'statistics of this text: a < b, "quoted" and </thought>',
      'wait 2 seconds and 3 seconds in parallel',
      'remember my city is Oslo',
      'do something that fails',
      'what can you do?',
    ]) {
      expectAccepted(await engine(ASSISTANT, form), demoText({ messages: [{ role: 'user', content }], agent }));
    }
  });

  test.each(FORMS)('[M3] every example of a shipped tool, %s form', async (form) => {
    const { refusal } = await engine(ASSISTANT, form);
    for (const { name, examples } of ASSISTANT.tools.values()) {
      for (const parameters of examples) {
        if (isJsonObject(parameters)) expect(refusal(renderAction({ name, parameters }, form))).toBeNull();
      }
    }
  });

  test('[P6] every field of an action, in the body or, in the compact form, in the tag', async () => {
    expectAccepted(
      await engine(ASSISTANT, 'full'),
      `<action type="tool" mode="async" id="a1">{"name": "echo", "parameters": {}, "depends_on": ["b", "c"],
 "output_key": "out", "wait_for_all": false, "timeout": 0.5, "retry": 10, "on_error": "skip", "when": "b.ok && size(c) > 0", "priority": -3, "idempotency_key": "k-1", "cache_ttl": 60}</action>`,
    );
    const tag = `<action name="echo" id="a1" mode="async" depends_on="b, c" output_key="out" wait_for_all="false" timeout="0.5" retry="10" on_error="skip" when="b.ok && size(c) > 0" priority="-3" idempotency_key="k-1" cache_ttl="60">`;
    expectAccepted(await engine(ASSISTANT, 'compact'), `${tag}{}</action>`);
    const [declared] = parse(`${tag}{}</action>`).flatMap((event) =>
      event.type === 'action_declared' ? [event.action] : [],
    );
    expect(declared).toMatchObject({
      dependsOn: ['b', 'c'],
      waitForAll: false,
      timeoutMs: 500,
      when: 'b.ok && size(c) > 0',
    });
  });

  test('[P12] a reference for a value of any type', async () => {
    const { refusal } = await engine(ASSISTANT, 'compact');
    const call = (value: string): string =>
      `<action name="web_fetch">{"url":"$links[0].href","max_chars":${value}}</action>`;
    expect([call('"$limit"'), call('"${a.b}"')].map(refusal)).toEqual([null, null]);
    for (const value of ['"many"', '"$limit and more"']) expect(refusal(call(value))).not.toBeNull();
  });

  const response = (text: string): string => `<response final="true">${text}</response>`;
  test.each([
    ['HTML, generics and comparisons', '<div>List<int> a<b && c << 2 <T> </div> <!'],
    ['names that begin like a tag', '<actions> <thoughtful> <respons'],
    ['quoted tags of the protocol', '<action name="x">{}</action> and <thought> and <system>'],
    ['a fence with tags in it', 'So:\n```xml\n<action>{}</action>\n```\nDone'],
    ['a fence at the very beginning and end', '```\ncode\n```'],
    ['inline code in three backticks', 'a ```b``` c'],
    ['references and dollars', '$5, $$, $report.title[0] and ${a-b}'],
    ['nothing', ''],
  ])('[P9] in a response: %s', async (_, text) => {
    expectAccepted(await engine(ASSISTANT, 'full'), response(text));
  });

  test.each<readonly [string, string]>([
    ['text outside all blocks', 'Hello.'],
    ['nothing at all', ''],
    ['only thoughts, which are no progress', '<thought>Hm.</thought>'],
    ['an unclosed response', '<response>Hello'],
    ['a response with its end in a code fence', response('```\ncode')],
    ['an action inside a code fence of a thought', '<thought>\n```\n<action name="echo">{}</action>\n```</thought>'],
    ['an unknown attribute of a response', '<response kind="x">Hello</response>'],
    ['an unknown tool', '<action name="teleport">{}</action>'],
    ['a missing parameter', '<action name="calculator">{}</action>'],
    ['an empty value of a parameter that must not be empty', '<action name="calculator">{"expression":""}</action>'],
    ['an unknown parameter', '<action name="calculator">{"expression":"1","x":1}</action>'],
    ['a wrong type', '<action name="text_stats">{"text":"x","top":"many"}</action>'],
    ['a number with the wrong sign', '<action name="text_stats">{"text":"x","top":-1}</action>'],
    ['a value that is not in the enum', '<action name="web_fetch">{"url":"x","method":"POST"}</action>'],
    ['a duplicate parameter', '<action name="calculator">{"expression":"1","expression":"2"}</action>'],
    ['a capability that the agent lacks', '<action type="docker">{"image":"a","command":"b"}</action>'],
    ['an internal action that does not exist', '<action type="internal" name="reboot">{}</action>'],
    ['an invalid id', '<action name="echo" id="a b">{}</action>'],
    ['single quotes', "<action name='echo'>{}</action>"],
    ['invalid JSON', '<action name="echo">{"a":1,}</action>'],
    ['an unclosed action', '<action name="echo">{}'],
    ['empty code', '<action type="python">{"code":" \\n "}</action>'],
    ...[
      'thought',
      'think',
      'thinking',
      'response',
      'action',
      'context_feed',
      'action_result',
      'results',
      'system',
    ].flatMap((name) => [
      [`<${name}> in a thought`, `<thought>a <${name}> b</thought>${response('x')}`] as const,
      [
        `</${name.toUpperCase()} > in a thought`,
        `<thought>a </${name.toUpperCase()} > b</thought>${response('x')}`,
      ] as const,
      [`<${name} at the end of a line of a thought`, `<thought>a <${name}\n> b</thought>${response('x')}`] as const,
    ]),
  ])('[P18] it refuses %s', async (_, text) => {
    expect((await engine(ASSISTANT, 'compact')).refusal(text)).not.toBeNull();
  });

  test('[P18] it refuses an internal action that this agent cannot use', async () => {
    const text = '<action type="internal" name="list_context_feeds">{}</action>';
    const { agent } = ASSISTANT;
    const internalActions = { ...agent.internalActions, enabled: true, blocked: ['list_context_feeds' as const] };
    const blocked = { ...ASSISTANT, agent: { ...agent, internalActions } };
    expect((await engine(ASSISTANT, 'compact')).refusal(text)).toBeNull();
    expect((await engine(blocked, 'compact')).refusal(text)).not.toBeNull();
  });

  test.each([
    ['generics and comparisons', 'a < b, List<int>, <T>, <table>, i <= 3, << and </div>'],
    ['inline code and dashes', '- `x`\n- ~5 minutes\n``y`` z'],
    ['a fence', '\n```py\nif a < b:\n    print("`x`")\n```\n'],
  ])('[P1] in a thought: %s', async (_, text) => {
    expectAccepted(await engine(ASSISTANT, 'full'), `<thought>${text}</thought>${response('x')}`);
  });
});

describe('parameters', () => {
  const one = (schema: JsonObject): ResolvedAgent =>
    agentWith([tool('t', { type: 'object', properties: { v: schema }, required: ['v'], additionalProperties: false })]);

  test.each<[string, JsonObject, readonly Json[], readonly Json[]]>([
    ['lengths', { type: 'string', minLength: 3, maxLength: 4 }, ['abc', 'äöüß', '😀😀😀'], ['ab', 'abcde', 5]],
    ['an enum of any type', { enum: ['a', 1, null, [1]] }, ['a', 1, null, [1]], ['b', 2, [2], {}]],
    ['an awkward enum', { enum: ['a "quoted" one', '</action>', 'a\\b\n'] }, ['</action>', 'a\\b\n'], ['a']],
    ['a constant', { const: { a: [true] } }, [{ a: [true] }], [{ a: [false] }, {}]],
    ['integers', { type: 'integer' }, [-12, 0, 7], [1.5, '1']],
    ['non-negative integers', { type: 'integer', minimum: 0, maximum: 10 }, [0, 10], [-1, 100]],
    ['positive integers', { type: 'integer', minimum: 1, maximum: 9 }, [1, 9], [0, -1, 10]],
    ['numbers', { type: 'number' }, [-1.5, 0, 1e21], ['1', null]],
    [
      'items and their number',
      { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 3 },
      [
        [1, 2],
        [1, 2, 3],
      ],
      [[1], [1, 2, 3, 4], ['a', 'b']],
    ],
    ['many items', { type: 'array', items: { type: 'null' }, minItems: 2 }, [[null, null, null]], [[null], []]],
    [
      'an object of numbers',
      { type: 'object', additionalProperties: { type: 'number' } },
      [{}, { a: 1, b: 2.5 }],
      [{ a: 'x' }],
    ],
    [
      'declared and additional properties',
      { type: 'object', properties: { a: { type: 'null' } }, additionalProperties: { type: 'boolean' } },
      [{}, { a: null }, { a: null, b: true }, { b: true, c: false }],
      [{ b: 1 }, { b: true, a: 1 }],
    ],
    ['several types', { type: ['integer', 'null', 'boolean'] }, [1, null, false], ['x', 1.5, []]],
    [
      'alternatives',
      { anyOf: [{ type: 'integer' }, { type: 'array', items: { type: 'null' } }] },
      [3, [null]],
      ['x', [1]],
    ],
    [
      'all of several schemas',
      {
        type: 'object',
        properties: { a: { type: 'integer' } },
        allOf: [{ properties: { a: { minimum: 0 }, b: {} }, required: ['a'] }],
      },
      [{ a: 5 }, { a: 5, b: 'x' }],
      [{}, { a: -5 }],
    ],
    ['properties without a type', { properties: { a: { type: 'integer' } }, required: ['a'] }, [{ a: 1 }], [{}, [], 1]],
    ['anything', {}, ['x', 1.5e3, [], [{ a: null }], {}], []],
    ['an empty object', { type: 'object', additionalProperties: false }, [{}], [{ a: 1 }]],
  ])('[M3] %s', async (_, schema, good, bad) => {
    const { refusal } = await engine(one(schema), 'full');
    const isAdmitted = (v: Json): boolean => refusal(renderAction({ name: 't', parameters: { v } }, 'full')) === null;
    expect(good.filter((v) => !isAdmitted(v))).toEqual([]);
    expect(bad.filter(isAdmitted)).toEqual([]);
  });

  test.each([[[]], [['b']], [['a', 'd']]])(
    '[M3] required parameters are %j: others are optional, and all are in the order of the schema',
    async (required) => {
      const letters = { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' }, d: { type: 'null' } };
      const { refusal } = await engine(
        agentWith([tool('t', { type: 'object', properties: letters, required, additionalProperties: false })]),
        'compact',
      );
      const isAdmitted = (names: readonly string[]): boolean =>
        refusal(`<action name="t">{${names.map((name) => `"${name}":null`).join(',')}}</action>`) === null;
      const subsets = Array.from({ length: 16 }, (_, mask) =>
        Object.keys(letters).filter((_name, index) => (mask & (1 << index)) !== 0),
      );
      expect(subsets.filter(isAdmitted)).toEqual(
        subsets.filter((names) => required.every((name) => names.includes(name))),
      );
      expect(isAdmitted(['d', 'b', 'a'])).toBe(false);
    },
  );

  test('[P18] a tool with a parameter named parameters gets it in the full form', async () => {
    const resolved = agentWith([tool('t', { type: 'object', properties: { parameters: { type: 'integer' } } })]);
    const text = '<action name="t">{"parameters":{"parameters":5}}</action>';
    expectAccepted(await engine(resolved, 'compact'), text);
    const [action] = parse(text).flatMap((event) => (event.type === 'action_declared' ? [event.action] : []));
    expect(action?.parameters).toEqual({ parameters: 5 });
  });

  test('[M3] restrictions that the grammar does not enforce are noted with their position', () => {
    const resolved = one({ type: 'string', pattern: '^a', maxLength: 5_000 });
    expect(buildGrammar(resolved, { format: 'gbnf', form: 'full' }).notes).toEqual([
      't-v: "pattern" is not in the grammar; it is checked before dispatch',
      't-v: "maxLength" is not in the grammar; it is checked before dispatch',
    ]);
  });

  test('[M3] schemas with unresolved or circular references still give a grammar', async () => {
    const schema: JsonObject = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/loop' }, b: { $ref: '#/nowhere' }, c: { $ref: '#' }, d: false },
      $defs: { loop: { $ref: '#/$defs/loop' } },
    };
    const resolved = agentWith([tool('t', schema)]);
    expectAccepted(await engine(resolved, 'compact'), '<action name="t">{"a":1,"b":[],"c":{"a":2}}</action>');
  });
});

describe('grammars for engines with a lexer', () => {
  test.each(FORMS)('[P18] a lexeme (in capitals) consists only of lexemes, %s form', (form) => {
    const { text } = buildGrammar(EVERYTHING, { format: 'gbnf', form });
    const rules = [...text.matchAll(/^([A-Z-]+) ::= (.*)$/gm)];
    expect(rules.length).toBeGreaterThan(20);
    for (const [, name, body = ''] of rules) {
      expect(body.replace(/"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]/g, ''), name).not.toMatch(/[a-z]/);
    }
  });

  test('[P18] Lark has its own syntax for rules, classes and repetitions', () => {
    const { text } = buildGrammar(ASSISTANT, { format: 'lark', form: 'compact' });
    expect(text).toMatch(/^\/\/ Protocol text of the agent "assistant"/);
    expect(text).toContain('\nstart: GAP? (idle_thought GAP?)* work');
    expect(text).toContain('\nGAP: /[ \\t\\n]{1,8}/\n');
    expect(text).toContain('(COMMA (WEB_EXTRACT_SELECTORS_ITEM | REFERENCE))~0..49');
    expect(text).toContain('" idempotency_key=" KEY');
    expect(text.replace(/"(?:[^"\\]|\\.)*"|\/\[(?:[^\]\\]|\\.)*\][^/ ]*\//g, '')).not.toMatch(/::=|[[\]{}-]/);
  });
});

describe('cortex grammar', () => {
  const run = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [join(import.meta.dirname, '../../../cli/main.ts'), 'grammar', ...args], {
      encoding: 'utf8',
    });

  test('[P18] prints the grammar of a bundled agent in the given notation and form', () => {
    const { status, stdout } = run('research_orchestrator', '--format', 'lark', '--form', 'compact');
    expect(status).toBe(0);
    expect(stdout).toBe(buildGrammar(shipped('research_orchestrator'), { format: 'lark', form: 'compact' }).text);
  });

  test.each([
    [['nobody'], 1, 'unknown agent "nobody" (known: '],
    [['assistant', '--format', 'ebnf'], 2, '--format "ebnf" is unknown (known: gbnf, lark)'],
  ])('[P18] %j is refused with a clear message', (args, code, words) => {
    const { status, stdout, stderr } = run(...args);
    expect({ status, stdout }).toEqual({ status: code, stdout: '' });
    expect(stderr).toContain(words);
  });
});

describe.each(FORMS)('[L4] tools in short form, %s form', (form) => {
  const named = largeTool(7, { name: 'odd', parameters: { type: 'object', properties: { parameters: {} } } });
  const resolved = agentOf([...largeTools(20), named], { form, toolTokens: 20 }, {}, false);

  test('may be called by their names, with any object; other names may not', async () => {
    expect(shownTools(resolved).full).toEqual([]);
    const engine = await engineFor(buildGrammar(resolved, { format: 'gbnf' }).text);
    const call = (name: string, parameters: JsonObject): string => renderAction({ name, parameters }, form);
    expect(engine.refusal(call('thing_19', { anything: [1] }))).toBeNull();
    expect(engine.refusal(call('thing_20', {}))).not.toBeNull();
    const shape = form === 'compact' ? { parameters: { parameters: 1 } } : { parameters: 1 };
    expect(engine.refusal(call('odd', shape))).toBeNull();
    const described = renderAction(
      { type: 'internal', name: 'describe_tools', parameters: { names: ['thing_1'] } },
      form,
    );
    expect(engine.refusal(described)).toBeNull();
  });

  test('2,000 of them add little more than their names', () => {
    const { text, notes } = buildGrammar(agentOf(largeTools(2_000), { form }, {}, false), { format: 'gbnf' });
    expect(text.length).toBeLessThan(2_000 * 20 + 20_000);
    expect(notes).toContainEqual(expect.stringContaining('2000 tools in short form'));
  });
});
