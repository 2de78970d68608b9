import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bundled } from '../../../src/catalog/bundled.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { DEFAULT_PROTOCOL } from '../../../src/domain/manifest.ts';
import type { AgentDefinition, ResolvedAgent, ToolDefinition } from '../../../src/domain/manifest.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { policyOf } from '../../../src/engine/actions/action-policy.ts';
import { demoText } from '../../../src/llm/demo/demo.ts';
import { validateParameters } from '../../../src/executors/validate-parameters.ts';
import { buildGrammar } from '../../../src/protocol/grammar/grammar.ts';
import type { GrammarFormat } from '../../../src/protocol/grammar/grammar.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { promptExamples, renderAction } from '../../../src/protocol/prompt/examples.ts';
import { readGbnf, readLark } from '../../support/grammar-reader.ts';
import type { Grammar } from '../../support/grammar-reader.ts';
import { recogniser } from '../../support/grammar-recogniser.ts';
import type { Recogniser } from '../../support/grammar-recogniser.ts';
import { sampler } from '../../support/grammar-sampler.ts';

type Form = 'full' | 'compact';
const FORMS: readonly Form[] = ['full', 'compact'];
const FORMATS: readonly GrammarFormat[] = ['gbnf', 'lark'];
const SAMPLES = 60;

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

/** An agent that may do everything, with tools whose names and schemas are as awkward as manifests allow. */
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

function read(resolved: ResolvedAgent, format: GrammarFormat, form: Form): Grammar {
  const { text } = buildGrammar(resolved, { format, form });
  return format === 'gbnf' ? readGbnf(text) : readLark(text);
}

function parse(text: string): ProtocolEvent[] {
  const parser = createParser({ json: 'strict', actInReasoning: false });
  return [...parser.feed(text), ...parser.end()];
}

describe.each([...AGENTS.keys()])('the grammar of %s', (name) => {
  const resolved = AGENTS.get(name) ?? shipped(name);

  describe.each(FORMS)('%s form', (form) => {
    const grammars = new Map(FORMATS.map((format) => [format, read(resolved, format, form)]));
    const recognisers = new Map([...grammars].map(([format, grammar]) => [format, recogniser(grammar)]));

    test.each(FORMATS)(
      '[P18] every sentence of the %s grammar parses clean and names only what the agent has',
      (format) => {
        const grammar = grammars.get(format);
        if (grammar === undefined) throw new Error(format);
        const spelled = (rule: string): string => (format === 'gbnf' ? rule : rule.replaceAll('-', '_'));
        const [id, reference] = format === 'gbnf' ? ['id', 'reference'] : ['ID', 'REFERENCE'];
        const withReferences = sampler(grammar, { distinct: [id] });
        const withValues = sampler(grammar, { distinct: [id], avoid: [reference] });
        for (let seed = 0; seed < SAMPLES; seed += 1) {
          const { text, used } = seed % 3 === 0 ? withReferences(seed) : withValues(seed);
          const events = parse(text);
          const count = (type: ProtocolEvent['type']): number => events.filter((event) => event.type === type).length;
          const uses = (...rules: string[]): number =>
            rules.reduce((total, rule) => total + (used.get(spelled(rule)) ?? 0), 0);
          const context = `seed ${seed}: ${JSON.stringify(text)}`;
          const faults = events.filter(
            ({ type }) => type === 'warning' || type === 'action_rejected' || type === 'text',
          );
          expect(faults, context).toEqual([]);
          // what the grammar took for an action, a thought, a response, the parser does too, and nothing else
          expect([count('action_declared'), count('thought_completed'), count('response_completed')], context).toEqual([
            uses('action'),
            uses('idle-thought', 'acting-thought'),
            uses('response'),
          ]);
          for (const event of events) {
            if (event.type !== 'action_declared') continue;
            const { action } = event;
            expect(policyOf(action, resolved, new Map()).refusal, context).toBeNull();
            const schema = action.type === 'tool' ? resolved.tools.get(action.name)?.parameters : undefined;
            // a reference stands for a value of any type until dispatch
            if (schema === undefined || seed % 3 === 0) continue;
            expect(validateParameters(schema, action.parameters), context).toBeNull();
          }
        }
      },
    );

    test('[P18] both notations admit the same sentences, and in Lark every lexeme is the longest', () => {
      for (const [from, to] of [
        ['gbnf', 'lark'],
        ['lark', 'gbnf'],
      ] as const) {
        const grammar = grammars.get(from);
        const accepts = recognisers.get(to);
        if (grammar === undefined || accepts === undefined) throw new Error(from);
        const sample = sampler(grammar);
        for (let seed = 1_000; seed < 1_000 + SAMPLES / 4; seed += 1) {
          const { text } = sample(seed);
          const stopped = accepts(text);
          expect(stopped, `${to}, seed ${seed}: ${JSON.stringify(text.slice(0, (stopped ?? 0) + 1))}`).toBeNull();
        }
      }
    });
  });
});

const acceptors = new Map<string, Recogniser>();

/** The assistant's are kept: they are asked often. */
function acceptor(resolved: ResolvedAgent, format: GrammarFormat, form: Form): Recogniser {
  const key = `${format} ${form}`;
  const isKept = resolved === ASSISTANT;
  const known = isKept ? acceptors.get(key) : undefined;
  const accepts = known ?? recogniser(read(resolved, format, form));
  if (isKept) acceptors.set(key, accepts);
  return accepts;
}

/** Fails with the place at which the grammar stopped. */
function expectAccepted(accepts: Recogniser, text: string): void {
  const stopped = accepts(text);
  const characters = Array.from(text);
  const shown =
    stopped === null
      ? ''
      : `…${characters.slice(Math.max(0, stopped - 60), stopped).join('')}⟦${characters.slice(stopped, stopped + 20).join('')}`;
  expect(stopped, shown).toBeNull();
}

/** The tools that the prompt's examples make up, as they use them. */
const MADE_UP = agentWith(
  [
    tool('weather', { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
    tool('compare', { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } }),
    tool('list_reports', { type: 'object', properties: { newest: { type: 'integer', minimum: 1 } } }),
  ],
  { capabilities: ['python', 'shell'], internalActions: { enabled: true, allowed: null, blocked: [] } },
);

describe.each(FORMATS)('what the %s grammar admits', (format) => {
  test.each(FORMS)('[L4] every example of the prompt, %s form', (form) => {
    const accepts = acceptor(MADE_UP, format, form);
    for (const { text } of promptExamples({ form, python: true, shell: true, variables: true, feeds: true })) {
      expectAccepted(accepts, text);
    }
  });

  test.each(FORMS)('[L3] what the demo model says, %s form', (form) => {
    const resolved = ASSISTANT;
    const accepts = acceptor(resolved, format, form);
    const agent = {
      name: 'assistant',
      tools: [...resolved.tools.values()],
      capabilities: resolved.agent.capabilities,
      form,
    };
    for (const content of [
      'compute 2**200 in python and list the files in shell at the same time, then sum it up',
      'what is 17 * 23 + 4',
      'fetch https://example.com and the headings of https://example.com and show progress',
      'statistics of this text: a < b, "quoted" and </thought>',
      'query {"a": [1, 2]} for a[0]',
      'wait 2 seconds and 3 seconds in parallel',
      'remember my city is Oslo',
      'do something that fails',
      'what can you do?',
    ]) {
      expectAccepted(accepts, demoText({ messages: [{ role: 'user', content }], agent }));
    }
  });

  test.each(FORMS)('[M3] every example of a shipped tool, %s form', (form) => {
    const resolved = ASSISTANT;
    const accepts = acceptor(resolved, format, form);
    for (const { name, examples } of resolved.tools.values()) {
      for (const parameters of examples) {
        if (isJsonObject(parameters)) expectAccepted(accepts, renderAction({ name, parameters }, form));
      }
    }
  });

  test('[P6] every field of an action, in the body or, in the compact form, in the tag', () => {
    expectAccepted(
      acceptor(ASSISTANT, format, 'full'),
      `<action type="tool" mode="async" id="a1">{"name": "echo", "parameters": {}, "depends_on": ["b", "c"],
 "output_key": "out", "wait_for_all": false, "timeout": 0.5, "retry": 10, "on_error": "skip", "when": "b.ok && size(c) > 0", "priority": -3, "idempotency_key": "k-1", "cache_ttl": 60}</action>`,
    );
    const tag = `<action name="echo" id="a1" mode="async" depends_on="b, c" output_key="out" wait_for_all="false" timeout="0.5" retry="10" on_error="skip" when="b.ok && size(c) > 0" priority="-3" idempotency_key="k-1" cache_ttl="60">`;
    expectAccepted(acceptor(ASSISTANT, format, 'compact'), `${tag}{}</action>`);
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

  test('[P12] a reference where a value of any type may stand', () => {
    const accepts = acceptor(ASSISTANT, format, 'compact');
    expectAccepted(
      accepts,
      '<action name="web_fetch">{"url":"$links[0].href","max_chars":"$limit","raw":"${a.b}"}</action>',
    );
    expect(accepts('<action name="web_fetch">{"url":"x","max_chars":"many"}</action>')).not.toBeNull();
    expect(accepts('<action name="web_fetch">{"url":"x","max_chars":"$limit and more"}</action>')).not.toBeNull();
  });

  const response = (text: string): string => `<response final="true">${text}</response>`;
  test.each([
    ['HTML, generics and comparisons', '<div>List<int> a<b && c << 2 <T> </div> <! </ <'],
    ['names that begin like a tag', '<actions> <thoughtful> </responses> <respons'],
    ['quoted tags of the protocol', '<action name="x">{}</action> and <thought> and <system>'],
    ['a fence with tags in it', 'So:\n```xml\n<action>{}</action>\n```\nDone'],
    ['a fence at the very beginning and end', '```\ncode\n```'],
    ['inline code in three backticks', 'a ```b``` c'],
    ['references and dollars', '$5, $$, $report.title[0] and ${a-b}'],
    ['nothing', ''],
  ])('[P9] in a response: %s', (_, text) => {
    expectAccepted(acceptor(ASSISTANT, format, 'full'), response(text));
  });

  test.each<readonly [string, string]>([
    ['text outside of every block', 'Hello.'],
    ['nothing at all', ''],
    ['thoughts alone, which would leave a run without progress', '<thought>Hm.</thought>'],
    ['a response that is not closed', '<response>Hello'],
    ['a response whose end stands in a code fence', response('```\ncode')],
    ['an action inside a code fence of a thought', '<thought>\n```\n<action name="echo">{}</action>\n```</thought>'],
    ['an unknown attribute of a response', '<response kind="x">Hello</response>'],
    ['an unknown tool', '<action name="teleport">{}</action>'],
    ['a missing parameter', '<action name="calculator">{}</action>'],
    ['an empty parameter that must not be', '<action name="calculator">{"expression":""}</action>'],
    ['an unknown parameter', '<action name="calculator">{"expression":"1","x":1}</action>'],
    ['a wrong type', '<action name="echo">{"delay_ms":"soon"}</action>'],
    ['a number out of range', '<action name="echo">{"delay_ms":3600001}</action>'],
    ['a value that is not in the enum', '<action name="web_fetch">{"url":"x","method":"POST"}</action>'],
    ['a parameter twice', '<action name="calculator">{"expression":"1","expression":"2"}</action>'],
    ['a declared parameter disguised as a further one', '<action name="echo">{"x":1,"delay_ms":"soon"}</action>'],
    ['a capability that the agent lacks', '<action type="docker">{"image":"a","command":"b"}</action>'],
    ['an internal action that does not exist', '<action type="internal" name="reboot">{}</action>'],
    ['an id that is none', '<action name="echo" id="a b">{}</action>'],
    ['single quotes', "<action name='echo'>{}</action>"],
    ['JSON that is not strict', '<action name="echo">{"a":1,}</action>'],
    ['an action that is not closed', '<action name="echo">{}'],
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
  ])('[P18] it refuses %s', (_, text) => {
    expect(acceptor(ASSISTANT, format, 'compact')(text)).not.toBeNull();
  });
  test('[P18] it refuses an internal action that this agent is not allowed', () => {
    const text = '<action type="internal" name="list_context_feeds">{}</action>';
    const { agent } = ASSISTANT;
    const internalActions = { ...agent.internalActions, enabled: true, blocked: ['list_context_feeds' as const] };
    expect(acceptor(ASSISTANT, format, 'compact')(text)).toBeNull();
    expect(acceptor({ ...ASSISTANT, agent: { ...agent, internalActions } }, format, 'compact')(text)).not.toBeNull();
  });
});

describe('parameters', () => {
  const one = (schema: JsonObject): { schema: JsonObject; resolved: ResolvedAgent } => {
    const whole = { type: 'object', properties: { v: schema }, required: ['v'], additionalProperties: false };
    return { schema: whole, resolved: agentWith([tool('t', whole)]) };
  };

  const NUMBERS = [
    -1000.5, -100, -12.51, -12.5, -12.49, -8, -7, -1, -0.5, 0, 0.04, 0.05, 0.050_1, 0.5, 0.95, 0.951, 1, 1.5,
  ].concat([
    1.51, 2.999, 3, 3.01, 9, 10, 99, 100, 101, 999, 1000, 1986, 1987, 1999.999, 2000, 2031, 2031.01, 2032, 99_999, 1e6,
    123_456_789,
  ]);
  const BOUNDS: readonly JsonObject[] = [
    { minimum: 0 },
    { minimum: 1, maximum: 10 },
    { minimum: 0.05, maximum: 0.95 },
    { exclusiveMinimum: 0, exclusiveMaximum: 1 },
    { minimum: -12.5, maximum: 1.5 },
    { exclusiveMinimum: -12.5, maximum: 3 },
    { exclusiveMaximum: -7 },
    { maximum: 0 },
    { minimum: 1987, maximum: 2031 },
    { minimum: 100, exclusiveMaximum: 1000 },
    { minimum: 7, maximum: 7 },
    { minimum: 99 },
    { minimum: 3, exclusiveMinimum: 2.5, maximum: 3.01 },
    { exclusiveMinimum: 2031 },
    { minimum: -100, maximum: -1 },
    {},
  ];
  test.each(BOUNDS.flatMap((bounds) => ['integer', 'number'].map((type) => ({ type, ...bounds }))))(
    '[M3] numbers within %j are admitted, others are not',
    (schema) => {
      const { schema: whole, resolved } = one(schema);
      const accepts = acceptor(resolved, 'gbnf', 'compact');
      for (const v of NUMBERS) {
        const valid = validateParameters(whole, { v }) === null;
        expect({ v, admitted: accepts(`<action name="t">{"v":${v}}</action>`) === null }).toEqual({
          v,
          admitted: valid,
        });
      }
    },
  );

  test.each<[string, JsonObject, readonly Json[], readonly Json[]]>([
    ['lengths', { type: 'string', minLength: 2, maxLength: 3 }, ['ab', 'äöü', '😀😀'], ['a', 'abcd', 5]],
    ['an enum of any type', { enum: ['a', 1, null, [1]] }, ['a', 1, null, [1]], ['b', 2, [2], {}]],
    ['a constant', { const: { a: [true] } }, [{ a: [true] }], [{ a: [false] }, {}]],
    [
      'items and their number',
      { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 2 },
      [[1], [1, 2]],
      [[], [1, 2, 3], ['a']],
    ],
    [
      'an object of numbers',
      { type: 'object', additionalProperties: { type: 'number' } },
      [{}, { a: 1, b: 2.5 }],
      [{ a: 'x' }],
    ],
    ['several types', { type: ['integer', 'null', 'boolean'] }, [1, null, false], ['x', 1.5, []]],
    [
      'alternatives',
      { anyOf: [{ type: 'integer' }, { type: 'array', items: { type: 'null' } }] },
      [3, [null]],
      ['x', [1]],
    ],
    ['no type, but properties', { properties: { a: { type: 'integer' } }, required: ['a'] }, [{ a: 1 }], [{}, [], 1]],
    ['anything', {}, ['x', 1.5e3, [], [{ a: null }], {}], []],
    ['an empty object', { type: 'object', additionalProperties: false }, [{}], [{ a: 1 }]],
  ])('[M3] %s', (_, schema, good, bad) => {
    const { resolved } = one(schema);
    for (const format of FORMATS) {
      const accepts = acceptor(resolved, format, 'full');
      const call = (v: Json): string => renderAction({ name: 't', parameters: { v } }, 'full');
      for (const v of good) expectAccepted(accepts, call(v));
      for (const v of bad) expect(accepts(call(v)), JSON.stringify(v)).not.toBeNull();
    }
  });

  test('[M3] optional ones may be left out anywhere, and come in the order of the schema', () => {
    const letters = { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' }, d: { type: 'null' } };
    for (const required of [[], ['b'], ['a', 'd']]) {
      const resolved = agentWith([
        tool('t', { type: 'object', properties: letters, required, additionalProperties: false }),
      ]);
      const accepts = acceptor(resolved, 'gbnf', 'compact');
      for (let mask = 0; mask < 16; mask += 1) {
        const names = Object.keys(letters).filter((_, index) => (mask & (1 << index)) !== 0);
        const body = JSON.stringify(Object.fromEntries(names.map((name) => [name, null])));
        const complete = required.every((name) => names.includes(name));
        expect({ body, admitted: accepts(`<action name="t">${body}</action>`) === null }).toEqual({
          body,
          admitted: complete,
        });
      }
      expect(accepts('<action name="t">{"d":null,"a":null}</action>')).not.toBeNull();
    }
  });

  test('[P18] a tool with a parameter called parameters is called so that it reaches it', () => {
    const resolved = agentWith([tool('t', { type: 'object', properties: { parameters: { type: 'integer' } } })]);
    const text = '<action name="t">{"parameters":{"parameters":5}}</action>';
    expectAccepted(acceptor(resolved, 'gbnf', 'compact'), text);
    const [action] = parse(text).flatMap((event) => (event.type === 'action_declared' ? [event.action] : []));
    expect(action?.parameters).toEqual({ parameters: 5 });
  });

  test('[M3] what a grammar cannot say is noted, with the place', () => {
    const { notes, text } = buildGrammar(one({ type: 'string', pattern: '^a', maxLength: 5_000 }).resolved, {
      format: 'gbnf',
      form: 'full',
    });
    expect(notes).toEqual([
      't-v: "pattern" is not in the grammar; it is checked before dispatch',
      't-v: "maxLength" (5000) is not in the grammar; it is checked before dispatch',
    ]);
    expect(() => readGbnf(text)).not.toThrow();
  });

  test('[M3] schemas that lead nowhere or in a circle still give a grammar', () => {
    const schema: JsonObject = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/loop' }, b: { $ref: '#/nowhere' }, c: { $ref: '#' }, d: false },
      $defs: { loop: { $ref: '#/$defs/loop' } },
    };
    const resolved = agentWith([tool('t', schema)]);
    expectAccepted(acceptor(resolved, 'lark', 'compact'), '<action name="t">{"a":1,"b":[],"c":{"a":2}}</action>');
  });
});

describe.each(FORMATS)('%s for every reader', (format) => {
  const lines = [...AGENTS.values()]
    .slice(0, 2)
    .flatMap((resolved) => FORMS.flatMap((form) => buildGrammar(resolved, { format, form }).text.split('\n')));
  const classes = lines.flatMap((line) =>
    [...line.matchAll(/\[\^?((?:\\.|[^\]\\])*)\]/g)].map(([, body = '']) => body),
  );

  test('[P18] escapes in classes have four digits, and none stands before what could be another digit', () => {
    expect(classes.length).toBeGreaterThan(100);
    for (const body of classes) {
      const escapes = [...body.matchAll(/\\(.)/gs)].map(([, letter = '']) => letter);
      expect(escapes.filter((letter) => !'\\nrtu[]'.includes(letter))).toEqual([]);
      expect(body).not.toMatch(/\\u00[01][0-9A-F](?=[0-9A-Fa-f])/);
    }
  });

  test('[P18] classes hold ASCII alone: negated ones of more are not read alike', () => {
    for (const body of classes) expect(body).not.toMatch(/[^ -~]|\\u(?!00[0-7])/);
  });
});

describe('the command', () => {
  const run = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [join(import.meta.dirname, '../../../scripts/grammar.ts'), ...args], {
      encoding: 'utf8',
    });

  test('[P18] it prints the grammar of a bundled agent in the notation and form asked for', () => {
    const { status, stdout } = run('research_orchestrator', '--format', 'lark', '--form', 'compact');
    expect(status).toBe(0);
    expect(stdout).toBe(buildGrammar(shipped('research_orchestrator'), { format: 'lark', form: 'compact' }).text);
  });

  test.each([
    [['nobody'], 'unknown agent "nobody" (known: '],
    [['assistant', '--format', 'ebnf'], '--format "ebnf" is unknown (known: gbnf, lark)'],
    [['assistant', '--form', 'short'], '--form "short" is unknown (known: full, compact)'],
    [['assistant', 'lark'], 'expected one agent\'s name, got "assistant lark"'],
    [['assistant', '--wrong'], "Unknown option '--wrong'"],
  ])('[P18] %j is refused in words', (args, words) => {
    const { status, stdout, stderr } = run(...args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(words);
  });
});
