/** Workflow manifests of the original system, in their own forms (M1, M6). */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';
import { bundled } from '../../support/bundled.ts';
import { translateCommand } from '../../../cli/migration/workflow/workflow-commands.ts';
import { translateCondition, translateText } from '../../../cli/migration/workflow/workflow-references.ts';
import type { Meaning } from '../../../cli/migration/workflow/workflow-references.ts';

const RELIC = 'kind: Relic\nversion: "1"\nname: store\nsummary: s\nimplementation: {type: edge, store: kv}\n';
const AGENT = 'kind: Agent\nversion: "1"\nname: planner\nsummary: s\npersona: p\n';

function flow(yaml: string) {
  const text = `kind: Workflow\nversion: "1.0"\nname: flow\nsummary: s\n${yaml}`;
  const files = [
    { path: 'flow.yml', text },
    { path: 'store.yml', text: RELIC },
    { path: 'planner.yml', text: AGENT },
  ];
  const { catalog, problems, warnings } = migrated(files, { bundled });
  const said = (list: typeof problems): string[] => list.map((one) => formatProblem(one).replace(/^\S+ /, ''));
  return { workflow: catalog.workflow('flow')?.workflow, errors: said(problems), warnings: said(warnings) };
}

const steps = (yaml: string) => {
  const { workflow, errors } = flow(yaml);
  expect(errors).toEqual([]);
  return workflow?.steps ?? [];
};

describe('[M1] a trigger of MK1', () => {
  const STEP = 'steps: [{ name: a, type: tool, target: echo }]\n';

  test.each([
    [
      '{ type: scheduled, schedule: "0 */6 * * *" }',
      { type: 'scheduled', cron: '0 */6 * * *' },
      ['trigger.schedule: understood as trigger.cron'],
    ],
    [
      '{ type: scheduled, schedule: "0 1 * * *", parameters: { age: { type: integer, default: 24 }, kind: string } }',
      { type: 'scheduled' },
      ['trigger.schedule: understood as trigger.cron', 'trigger.parameters: understood as inputs'],
    ],
    [
      '{ type: event, event_type: made }',
      { type: 'event', event: 'made' },
      ['trigger.event_type: understood as trigger.event'],
    ],
    ['{ type: manual, event: made }', { type: 'manual' }, ['trigger.event: without effect in a manual trigger: event']],
  ])('%s', (trigger, expected, warnings) => {
    const found = flow(`trigger: ${trigger}\n${STEP}`);
    expect(found.errors).toEqual([]);
    expect(found.workflow?.trigger).toMatchObject(expected);
    expect(found.warnings).toEqual(warnings);
  });

  test('defaults of parameters and of the input schema are values of inputs that a start leaves out', () => {
    const trigger = 'trigger: { type: manual, parameters: { age: { type: integer, default: 24 }, kind: string } }\n';
    expect(flow(`${trigger}${STEP}`).workflow?.defaults).toEqual({ age: 24 });
    const schema = 'input_schema: { type: object, properties: { env: { type: string, default: test } } }\n';
    expect(flow(`${schema}${STEP}`).workflow?.defaults).toEqual({ env: 'test' });
  });

  test('a webhook without a secret is manual: it is never open', () => {
    const found = flow(`trigger: { type: webhook, webhook_path: /x, method: POST }\n${STEP}`);
    expect(found.workflow?.trigger).toEqual({ type: 'manual' });
    expect(found.warnings[0]).toMatch(
      /^trigger\.type: understood as manual: a webhook needs a signature; add "secret: TOOL_…"/,
    );
  });

  test('its parameters are inputs; only those that say so are required', () => {
    const { workflow } = flow(
      `trigger: { type: manual, parameters: { text: { type: string, required: true, validation: { min_length: 2 } }, tags: array } }\n${STEP}`,
    );
    expect(workflow?.inputs).toMatchObject({
      required: ['text'],
      properties: { text: { type: 'string', minLength: 2 }, tags: { type: 'array' } },
    });
  });
});

test('[M1] a workflow of MK1: defaults, relic endpoints, conditions, outputs and variables', () => {
  const { workflow, errors, warnings } = flow(`trigger: { type: manual, parameters: { text: string } }
configuration: { timeout: 9, default_retry_policy: { max_attempts: 2, backoff: linear }, error_handling: { on_step_failure: continue }, concurrency: { max_parallel_steps: 2 } }
steps:
  - { name: look up, type: relic, target: store, parameters: { action: get, key: "k:$TIMESTAMP" }, on_failure: abort }
  - { name: first, type: relic, target: store, parameters: { key: a } }
  - { name: build, type: internal, parameters: { data: { text: $(trigger.text), id: $WORKFLOW_ID } } }
  - { name: tell, type: agent, target: planner, parameters: { task: plan, topic: $(trigger.text) } }
  - name: check
    type: conditional
    if: "$(steps.build.data.text) == 'x'"
    then: [{ name: yes_, type: tool, target: echo }]
    else: [{ name: no_, type: parallel, parallel: [{ name: one, type: tool, target: echo }], max_concurrency: 1 }]
outputs:
  text: { source: steps.build.data.text, description: The text, optional: true }
  at: { source: $TIMESTAMP }
`);
  expect(errors).toEqual([]);
  expect(workflow?.maxParallelSteps).toBe(2);
  expect(workflow?.steps).toMatchObject([
    {
      name: 'look_up',
      action: 'get',
      parameters: { key: 'k:$(run.TIMESTAMP)' },
      onFailure: 'abort',
      retry: { maxAttempts: 2, backoff: 'linear' },
    },
    { name: 'first', target: 'store', action: null, onFailure: 'continue' },
    { name: 'build', type: 'value', value: { data: { text: '$(trigger.text)', id: '$(run.WORKFLOW_ID)' } } },
    { name: 'tell', target: 'planner', parameters: { message: '{"task":"plan","topic":"$(trigger.text)"}' } },
    {
      type: 'conditional',
      condition: "steps.build.data.text == 'x'",
      steps: [{ name: 'yes_' }],
      otherwise: [{ type: 'parallel', concurrency: 1, steps: [{ name: 'one', onFailure: 'continue' }] }],
    },
  ]);
  expect(workflow?.outputs).toEqual({ text: 'steps.build.data.text', at: 'run.TIMESTAMP' });
  expect(warnings).toEqual([
    'trigger.parameters: understood as inputs',
    'configuration: understood as on_failure and retry_policy of the steps; timeout and observability have no effect',
  ]);
});

describe('[M1] steps of agent-lib', () => {
  test('id, target, params and on_error', () => {
    expect(
      steps(`steps:
  - { id: plan, type: agent, name: "Make a plan", agent: planner, params: { instruction: "Plan: \${input.task}", ephemeral: true }, on_error: skip }
  - { id: act, tool: echo, params: { plan: "\${plan.output}", all: "\${plan}", n: "\${act0.x}" }, max_retries: 2 }
  - { id: keep, type: relic, relic: store, action: set, params: { key: a, value: "\${act.text}" }, on_error: retry, max_retries: 1 }
`),
    ).toMatchObject([
      {
        name: 'plan',
        type: 'agent',
        target: 'planner',
        parameters: { message: 'Plan: $(trigger.task)' },
        onFailure: 'continue',
      },
      {
        name: 'act',
        type: 'tool',
        target: 'echo',
        parameters: { plan: '$(steps.plan)', all: '$(steps.plan)', n: '${act0.x}' },
        onFailure: 'abort',
        retry: { maxAttempts: 3 },
      },
      {
        type: 'relic',
        action: 'set',
        parameters: { value: '$(steps.act.text)' },
        onFailure: 'continue',
        retry: { maxAttempts: 2 },
      },
    ]);
  });

  test('switch, map, reduce, loop, parallel, try_catch, human, emit, checkpoint and return', () => {
    const found = flow(`input_schema: { type: object, required: [env], properties: { env: { type: string } } }
output_schema: { type: object }
steps:
  - { id: started, type: emit, event: go, payload: { env: "\${input.env}" } }
  - { id: sure, type: human, prompt: "Ship to \${input.env}?", default: y, timeout_sec: 5, response_var: answer }
  - id: gate
    type: switch
    on: "\${answer}"
    cases:
      - { value: n, steps: [{ id: stop, type: return, value: { status: cancelled } }] }
      - { value: 7, steps: [] }
    default: [{ id: go_on, type: checkpoint, state: { env: "\${input.env}" }, message: ok }]
  - { id: each, type: map, over: "[1, 2]", as: n, step: { id: one, type: tool, tool: echo, params: { text: "\${n}" } } }
  - { id: total, type: reduce, over: "\${each}", as: x, initial: 0, step: { id: add, type: tool, tool: echo, params: { text: "\${acc} \${x.text}" } } }
  - { id: poll, type: loop, condition: "ask.text == done", body: [{ id: ask, type: tool, tool: echo }] }
  - { id: many, type: parallel, steps: [{ id: p, type: tool, tool: echo }, { id: gone, type: tool, tool: missing_tool }] }
  - { id: first, type: parallel_race, steps: [{ id: r1, type: tool, tool: echo }] }
  - { id: all, type: parallel_join, steps: [{ id: j1, type: tool, tool: echo }] }
  - id: safe
    type: try_catch
    body: [{ id: risky, type: tool, tool: missing_tool }]
    catch: [{ id: caught, type: emit, event: bad }]
    finally: [{ id: done_, type: emit, event: end }]
  - { id: pick, type: condition, condition: "total.count > 0", then: [{ id: t, type: tool, tool: echo }], else: [{ id: e, type: tool, tool: echo }] }
  - { id: result, type: return, value: { total: "\${total}", first: "\${first.winner}" } }
`);
    expect(found.errors).toEqual([]);
    expect(found.workflow?.inputs).toMatchObject({ required: ['env'] });
    expect(found.workflow?.steps).toMatchObject([
      { type: 'value', value: { event: 'go', payload: { env: '$(trigger.env)' } } },
      { type: 'ask', parameters: { prompt: 'Ship to $(trigger.env)?', default: 'y' } },
      {
        type: 'switch',
        value: '$(steps.sure)',
        cases: [
          { value: 'n', steps: [{ type: 'return', value: { status: 'cancelled' } }] },
          { value: '7', steps: [] },
        ],
        otherwise: [{ type: 'value', value: { id: 'go_on', message: 'ok', state: { env: '$(trigger.env)' } } }],
      },
      { type: 'for_each', items: [1, 2], concurrency: 1, steps: [{ parameters: { text: '$(item)' } }] },
      {
        type: 'reduce',
        items: '$(steps.each.items)',
        value: 0,
        steps: [{ parameters: { text: '$(acc) $(item.text)' } }],
      },
      { type: 'loop', until: 'steps.ask.text == "done"', steps: [{ name: 'ask' }] },
      { type: 'parallel', steps: [{ onFailure: 'continue' }, { onFailure: 'continue' }] },
      { type: 'race' },
      { type: 'parallel', steps: [{ onFailure: 'abort' }] },
      { type: 'try', steps: [{ name: 'risky' }], rescue: [{ type: 'value' }], always: [{ type: 'value' }] },
      { type: 'conditional', condition: 'steps.total.count > 0', steps: [{ name: 't' }], otherwise: [{ name: 'e' }] },
      { type: 'return', value: { total: '$(steps.total)', first: '$(steps.first.result.winner)' } },
    ]);
    expect(found.warnings.filter((text) => text.includes('emit:'))).toHaveLength(1);
    expect(found.warnings).toContainEqual(
      expect.stringMatching(/imports the tool "missing_tool", which does not exist.*; the step fails when it runs$/),
    );
  });

  test('without a return, the outputs are the results of the steps', () => {
    const list = 'steps: [{ id: a, tool: echo }, { id: b, type: map, over: "[1]", step: { id: c, tool: echo } }]\n';
    expect(flow(list).workflow?.outputs).toEqual({ a: 'steps.a', b: 'steps.b.items' });
  });

  test('a missing tool whose failure ends the workflow is an error', () => {
    expect(flow('steps: [{ id: a, type: tool, tool: missing_tool }]\n').errors).toEqual([
      expect.stringContaining('imports the tool "missing_tool", which does not exist'),
    ]);
  });

  test('a feed step is an error that names the step', () => {
    expect(flow('steps: [{ id: a, type: feed, feed: prices }]\n').errors).toEqual([
      expect.stringMatching(/^steps\[0\].*"feed" is not allowed/),
    ]);
  });

  test('[X4] a tool of the project that is called exec grants no shell', () => {
    const { workflow } = flow('import: { tools: [./tools/exec.yml] }\nsteps:\n  - { id: a, tool: exec }\n');
    expect(workflow?.capabilities ?? []).toEqual([]);
    const { errors } = flow('capabilities: []\nsteps:\n  - { id: a, tool: exec, params: { command: id } }\n');
    expect(errors).toEqual([expect.stringContaining('shell needs "capabilities: [shell]"')]);
  });

  test('[X4] [P14] exec becomes a shell step; its references are environment variables', () => {
    const { workflow, errors, warnings } = flow(`import: { tools: [builtin/exec, builtin/grep] }
steps:
  - { id: count, type: tool, tool: exec, params: { command: "wc -l \${input.file}" } }
  - { id: say, type: tool, tool: exec, params: { command: "printf '%s' 'Lines: \${count.output}'" } }
`);
    expect(errors).toEqual([]);
    expect(workflow).toMatchObject({
      capabilities: ['shell'],
      imports: { tools: [] },
      steps: [
        { type: 'shell', parameters: { command: 'wc -l "${value_1}"', inputs: { value_1: '$(trigger.file)' } } },
        {
          type: 'shell',
          parameters: { command: `printf '%s' 'Lines: '"\${value_1}"''`, inputs: { value_1: '$(steps.count)' } },
        },
      ],
    });
    expect(warnings.filter((text) => text.includes('exec: runs in the sandbox'))).toHaveLength(1);
  });
});

describe('[M6] shell steps', () => {
  test.each([
    ['steps: [{ name: a, type: shell, parameters: { command: id } }]', /shell needs "capabilities: \[shell\]"/],
    ['capabilities: [shell]\nsteps: [{ name: a, type: shell }]', /needs the text "command"/],
    [
      'capabilities: [shell]\nsteps: [{ name: a, type: shell, parameters: { command: id, inputs: [] } }]',
      /must be a map/,
    ],
  ])('%j', (yaml, message) => {
    expect(flow(`${yaml}\n`).errors).toEqual([expect.stringMatching(message)]);
  });
});

test('[M1] a workflow in this system’s form is not changed: its text stays literal', () => {
  const { workflow, warnings } = flow(`inputs: { a: string }
steps:
  - { name: x, type: tool, target: echo, parameters: { text: "\${trigger.a} $TIMESTAMP {{ steps.x }} $(trigger.a)" } }
`);
  expect(warnings).toEqual([]);
  expect(workflow?.steps[0]?.parameters).toEqual({ text: '${trigger.a} $TIMESTAMP {{ steps.x }} $(trigger.a)' });
});

const NAMES = new Map<string, Meaning>([
  ['a', { path: 'steps.a', isWhole: false, isText: false, member: null }],
  ['agent', { path: 'steps.agent', isWhole: true, isText: true, member: null }],
  ['list', { path: 'steps.list', isWhole: false, isText: false, member: 'items' }],
]);

describe('[M1] references of the original', () => {
  test.each([
    ['${a.x} {{ a.x }} ${a}', '$(steps.a.x) $(steps.a.x) $(steps.a)'],
    ['${agent.output} ${agent.output.x} ${agent.other}', '$(steps.agent) $(steps.agent.x) $(steps.agent.other)'],
    ['${list} ${list[0].x}', '$(steps.list.items) ${list[0].x}'],
    ['${steps.a.outputs.x} ${steps.a.x}', '$(steps.a.x) $(steps.a.x)'],
    ['${input.x} ${inputs.x} ${trigger.x}', '$(trigger.x) $(trigger.x) $(trigger.x)'],
    ['$TIMESTAMP ${DATE} $TIMESTAMPED $(steps.a)', '$(run.TIMESTAMP) $(run.DATE) $TIMESTAMPED $(steps.a)'],
    ['${unknown} ${HOME:-x} $5', '${unknown} ${HOME:-x} $5'],
  ])('%j', (written, expected) => {
    expect(translateText(written, NAMES)).toBe(expected);
  });

  test.each([
    ['a.count > 0', 'steps.a.count > 0'],
    ['${a.env} == production', 'steps.a.env == "production"'],
    ["agent.output != 'x'", "steps.agent != 'x'"],
    ['$(steps.a.ok) == true', 'steps.a.ok == true'],
    ['input.flag', 'trigger.flag == true'],
    ["$(steps.agent.status) == 'success'", 'steps.agent != null'],
    ['agent.status != completed', 'steps.agent == null'],
    ['${agent.status} == "failed"', 'steps.agent == null'],
    ["agent.status == 'late'", "steps.agent.status == 'late'"],
    ["$(steps.a.status) == 'success'", "steps.a.status == 'success'"],
    ["$(steps.a.x) == 'y' && ${a.z} > 1", "steps.a.x == 'y' && steps.a.z > 1"],
  ])('the condition %j', (written, expected) => {
    expect(translateCondition(written, NAMES)).toBe(expected);
  });

  test.each([
    ['cat ${a.x}', 'cat "${value_1}"'],
    ['cat "${a.x}"', 'cat "${value_1}"'],
    ["cat '${a.x}'", `cat ''"\${value_1}"''`],
    ['cat \\"${a.x}\\"', 'cat \\""${value_1}"\\"'],
    ['echo ${a.x} ${a.y} ${a.x} ${HOME}', 'echo "${value_1}" "${value_2}" "${value_1}" ${HOME}'],
  ])('[P14] the command %j', (written, command) => {
    expect(translateCommand(written, NAMES)).toMatchObject({ command });
  });

  test.each([
    'cat <<END\n${a.x}\nEND',
    'echo $((${a.x} + 1))',
    '(( ${a.x} > 1 )) && echo yes',
    'echo `cat ${a.x}`',
    "printf %s $'it\\'s' ${a.x}",
    'echo "${B:-"${a.x}"}"',
    'eval "echo ${a.x}"',
    "sh -c 'echo ${a.x}'",
    "python3 -u -c 'print(${a.x})'",
    'echo "$(case x in x) echo ${a.x};; esac)"',
    'echo "${a.x}',
  ])('[P14] the command %j gets no values, because they could become code', (written) => {
    expect(translateCommand(written, NAMES)).toMatchObject({ reason: expect.any(String) as string });
  });

  test('[P14] a command without references is not changed', () => {
    const written = 'cat <<END\nit `is` $((1 + 1))\nEND';
    expect(translateCommand(written, NAMES)).toEqual({ command: written, inputs: {} });
  });

  test.each([
    'printf "[%s]" ${a.x}',
    'printf "[%s]" "${a.x}"',
    "printf '[%s]' '${a.x}'",
    'printf "[%s]" "$(printf %s "${a.x}")"',
    'printf "[%s]" "$(printf %s \'${a.x}\')"',
    "# don't\nprintf '[%s]' ${a.x}",
    'for i in 1; do printf "[%s]" ${a.x}; done # it\'s',
    '(printf "[%s]" "${HOME}"${a.x}) && :',
  ])('[P14] in the command %j, the shell reads any value as one word', (written) => {
    const value = '* $(echo no) `id` "\' ; exit 3\n-x';
    const made = translateCommand(written, NAMES);
    if ('reason' in made) throw new Error(made.reason);
    const env = {
      PATH: process.env['PATH'],
      HOME: '',
      ...Object.fromEntries(Object.keys(made.inputs).map((name) => [name, value])),
    };
    const { stdout, stderr } = spawnSync('sh', ['-c', made.command], { env, encoding: 'utf8' });
    expect([stdout, stderr]).toEqual([`[${value}]`, '']);
  });

  test('[M1] long texts of conditions and commands take linear time', () => {
    const begun = performance.now();
    const many = 200_000;
    for (const text of [
      ' '.repeat(many),
      `a${' '.repeat(many)}`,
      '{{'.repeat(many),
      '${'.repeat(many),
      '<'.repeat(many),
      '`'.repeat(many),
    ]) {
      translateCommand(text, NAMES);
      translateCondition(`${text} x`, NAMES);
      translateText(text, NAMES);
    }
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});
