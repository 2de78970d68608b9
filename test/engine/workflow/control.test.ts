/** Steps that decide what runs: switch, try, return, reduce, loop, race, value and ask; from YAML to the outputs (M6). */
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { approve, atEveryAppend, finish, load, run, Shop } from './flows.ts';

describe('[M6] value', () => {
  test('its result is the value, with references; text with a $ stays text', async () => {
    const { outputs, started } = await run(
      `steps:
  - { name: a, type: tool, target: work, parameters: { give: { n: 2 } } }
  - { name: v, type: value, value: { n: $(steps.a.n), text: "costs $5, $(trigger.who)", list: [$(steps.a)] } }
  - { name: none, type: value, condition: "steps.a.n > 5", value: 1 }
outputs: { v: steps.v, none: steps.none }
`,
      { who: '$x' },
    );
    expect(started).toEqual(['a']);
    expect(outputs).toEqual({ v: { n: 2, text: 'costs $5, $x', list: [{ n: 2 }] }, none: null });
  });
});

test('[M6] inputs that a start leaves out have their defaults; $(run.…) is the run', async () => {
  const yaml = `defaults: { a: 1, b: 2 }
steps: [{ name: v, type: value, value: { a: $(trigger.a), b: $(trigger.b), at: $(run.TIMESTAMP), day: "on $(run.DATE)" } }]
outputs: { v: steps.v }
`;
  expect((await run(yaml, { b: 3 })).outputs).toEqual({
    v: { a: 1, b: 3, at: expect.stringMatching(/^\d{4}-.*Z$/), day: expect.stringMatching(/^on \d{4}-\d\d-\d\d$/) },
  });
});

describe('[M6] switch', () => {
  const FLOW = `steps:
  - name: route
    type: switch
    value: $(trigger.where)
    cases:
      - { value: near, steps: [{ name: go, type: tool, target: work, parameters: { give: walk } }] }
      - { value: 7, steps: [{ name: go, type: tool, target: work, parameters: { give: seven } }] }
      - { value: nowhere, steps: [] }
    else: [{ name: stay, type: tool, target: work, parameters: { give: home } }]
outputs: { go: steps.go, stay: steps.stay }
`;
  test.each<[Json, Json]>([
    ['near', { go: 'walk', stay: null }],
    [7, { go: 'seven', stay: null }],
    ['nowhere', { go: null, stay: null }],
    ['near ', { go: null, stay: 'home' }],
    [null, { go: null, stay: 'home' }],
    ['constructor', { go: null, stay: 'home' }],
  ])('%j runs the steps of its case only', async (where, outputs) => {
    expect(await run(FLOW, { where })).toMatchObject({ status: 'completed', outputs });
  });
});

describe('[M6] try', () => {
  const FAIL = '{ name: bad, type: tool, target: work, parameters: { fail: true } }';
  const flow = (body: string, more: string, rest = ''): string => `steps:
  - name: safe
    type: try
    steps:
${body}
${more}
  - { name: after, type: tool, target: work, parameters: { give: "$(steps.safe.caught)" } }
${rest}`;

  test('after a failure, the rest of its steps does not run, and catch does; a failed step is null', async () => {
    const { status, outputs, started } = await run(
      flow(
        `      - { name: one, type: tool, target: work, parameters: { give: 1 } }
      - ${FAIL}
      - { name: never, type: tool, target: work }`,
        '    catch: [{ name: mend, type: value, value: ["$(steps.one)", "$(steps.bad)", "$(steps.never.x)"] }]',
        'outputs: { mend: steps.mend, caught: steps.safe.caught, error: steps.safe.error, bad: steps.bad, never: steps.never }\n',
      ),
    );
    expect({ status, started }).toEqual({ status: 'completed', started: ['one', 'bad', 'after'] });
    expect(outputs).toEqual({
      mend: [1, null, null],
      caught: true,
      error: expect.stringContaining('Step "bad" failed'),
      bad: null,
      never: null,
    });
  });

  test('without a failure, catch does not run; finally always does', async () => {
    const body = '      - { name: one, type: tool, target: work }';
    const more = `    catch: [{ name: mend, type: tool, target: work }]
    finally: [{ name: end, type: tool, target: work }]`;
    expect(await run(flow(body, more, 'outputs: { mend: steps.mend, caught: steps.safe.caught }\n'))).toMatchObject({
      outputs: { mend: null, caught: false },
      started: ['one', 'end', 'after'],
    });
    expect((await run(flow(`      - ${FAIL}`, more))).started).toEqual(['bad', 'mend', 'end', 'after']);
  });

  test('a failure without catch, and one in catch, fails the workflow after finally', async () => {
    const finish = '    finally: [{ name: end, type: tool, target: work }]';
    const plain = await run(flow(`      - ${FAIL}`, finish));
    expect(plain).toMatchObject({ status: 'failed', started: ['bad', 'end'] });
    expect(plain.error).toContain('Step "safe" failed');
    const twice = await run(flow(`      - ${FAIL}`, `    catch: [${FAIL.replace('bad', 'worse')}]\n${finish}`));
    expect(twice).toMatchObject({ status: 'failed', started: ['bad', 'worse', 'end'] });
  });

  test('a failure inside a group of a try is caught; the group is null', async () => {
    const body = `      - name: both
        type: parallel
        steps:
          - { name: good, type: tool, target: work, parameters: { give: 1 } }
          - ${FAIL}`;
    const { status, outputs } = await run(
      flow(body, '    catch: [{ name: mend, type: value, value: "$(steps.good)" }]', 'outputs: { mend: steps.mend }\n'),
    );
    expect({ status, outputs }).toEqual({ status: 'completed', outputs: { mend: 1 } });
  });
});

describe('[M6] return', () => {
  test('ends the workflow with its value; later steps do not run', async () => {
    const flow = `steps:
  - name: gate
    type: conditional
    condition: trigger.stop == true
    steps: [{ name: cancel, type: return, value: { status: cancelled, by: $(trigger.who) } }]
  - { name: work1, type: tool, target: work }
  - { name: done, type: return, value: { status: done } }
outputs: { never: steps.work1 }
`;
    expect(await run(flow, { stop: true, who: 'me' })).toMatchObject({
      status: 'completed',
      outputs: { status: 'cancelled', by: 'me' },
      started: [],
    });
    expect(await run(flow, { stop: false })).toMatchObject({ outputs: { status: 'done' }, started: ['work1'] });
  });

  test('in a try, finally runs before the end', async () => {
    const { outputs, started } = await run(`steps:
  - name: safe
    type: try
    steps: [{ name: bad, type: tool, target: work, parameters: { fail: true } }]
    catch: [{ name: out, type: return, value: rolled back }]
    finally: [{ name: log, type: tool, target: work }]
  - { name: never, type: tool, target: work }
`);
    expect({ outputs, started }).toEqual({ outputs: { value: 'rolled back' }, started: ['bad', 'log'] });
  });

  test('in a list, the remaining items do not run', async () => {
    const { outputs, started } = await run(`steps:
  - name: each
    type: for_each
    items: [1, 2, 3]
    concurrency: 1
    steps:
      - { name: look, type: tool, target: work, parameters: { give: $(item) } }
      - { name: found, type: return, condition: "steps.look == 2", value: { at: $(index) } }
outputs: { each: steps.each }
`);
    expect({ outputs, started }).toEqual({ outputs: { at: 1 }, started: ['each_0_look', 'each_1_look'] });
  });
});

describe('[M6] reduce', () => {
  const flow = (items: string): string => `steps:
  - name: sum
    type: reduce
    items: ${items}
    value: { total: 0 }
    steps:
      - { name: add, type: value, condition: "acc.total < 100", value: { total: "$(acc.total)$(item)", at: $(index) } }
outputs: { sum: steps.sum, total: steps.sum.total }
`;
  test('the result of each item is $(acc) for the next one', async () => {
    expect((await run(flow('[1, 2, 3]').replace(', condition: "acc.total < 100"', ''))).outputs).toEqual({
      sum: { total: '0123', at: 2 },
      total: '0123',
    });
    expect((await run(flow('[1]'))).outputs).toMatchObject({ total: '01' });
  });
  test('without items, the result is the first value', async () => {
    expect((await run(flow('[]'))).outputs).toEqual({ sum: { total: 0 }, total: 0 });
  });
});

describe('[M6] loop', () => {
  const flow = (until: string): string => `steps:
  - name: poll
    type: loop
    until: ${until}
    max_rounds: 3
    steps: [{ name: ask, type: tool, target: work, parameters: { give: { state: $(trigger.state) } } }]
outputs: { state: steps.poll.ask.state }
`;
  test.each([
    ['a true condition ends it after a round', `steps.ask.state == 'ready'`, ['poll_0_ask'], 'ready'],
    [
      'a false one repeats it up to the maximum',
      `steps.ask.state == 'x'`,
      ['poll_0_ask', 'poll_1_ask', 'poll_2_ask'],
      'ready',
    ],
    ['one over earlier values is checked before the first round', `trigger.state == 'ready'`, [], null],
  ])('%s', async (_what, until, started, state) => {
    expect(await run(flow(until), { state: 'ready' })).toMatchObject({
      status: 'completed',
      started,
      outputs: { state },
    });
  });
  test('a condition that cannot be evaluated fails the step', async () => {
    expect((await run(flow('steps.ask.state > 1'), { state: 'a' })).error).toContain(
      'its condition cannot be evaluated',
    );
  });
});

describe('[M6] race', () => {
  const flow = (first: string): string => `steps:
  - name: fetch
    type: race
    steps:
      - { name: one, type: tool, target: work, parameters: { ${first}, give: one } }
      - { name: two, type: tool, target: work, parameters: { ms: 50, give: two } }
outputs: { winner: steps.fetch.winner, result: steps.fetch.result }
`;
  test.each([
    ['the first to succeed', 'ms: 10', 'one'],
    ['a failed step does not win', 'ms: 10, fail: true', 'two'],
    ['a slow step does not win', 'ms: 90', 'two'],
  ])('%s', async (_what, first, winner) => {
    expect((await run(flow(first))).outputs).toEqual({ winner, result: winner });
  });
  test('fails if all of its steps fail', async () => {
    const { status, error } = await run(flow('fail: true').replace('ms: 50', 'fail: true'));
    expect({ status, error }).toEqual({ status: 'failed', error: expect.stringContaining('all steps failed') });
  });
});

describe('[M6] [J8] ask', () => {
  const FLOW = `steps:
  - { name: sure, type: ask, parameters: { prompt: "Ship $(trigger.what)?", default: "y" } }
  - name: gate
    type: switch
    value: $(steps.sure)
    cases: [{ value: n, steps: [{ name: no, type: return, value: { shipped: false } }] }]
  - { name: ship, type: tool, target: work }
  - { name: end, type: return, value: { shipped: true } }
`;
  test.each([
    [true, { shipped: true }, ['ship']],
    [false, { shipped: false }, []],
  ])('waits for the decision of a person: %j', async (approved, outputs, started) => {
    const shop = new Shop();
    const kit = await shop.kit(load(FLOW));
    await kit.session.workflow({ what: 'it' });
    expect(await finish(kit)).toMatchObject({ status: 'waiting' });
    expect(shop.started).toEqual([]);
    const asked = kit.events.find(({ type }) => type === 'approval_requested');
    expect(JSON.stringify(asked)).toContain('Ship it?');
    await approve(kit, approved);
    expect(await finish(kit)).toMatchObject({ status: 'completed', outputs });
    expect(shop.started).toEqual(started);
  });
});

test('[J2] [M6] all of these survive a crash at every append', async () => {
  const flow = `steps:
  - name: safe
    type: try
    steps: [{ name: bad, type: tool, target: work, parameters: { fail: true } }]
    catch: [{ name: mend, type: tool, target: work, parameters: { give: mended } }]
  - name: sum
    type: reduce
    items: [1, 2]
    value: ""
    steps: [{ name: add, type: value, value: "$(acc)$(item)" }]
  - name: route
    type: switch
    value: $(steps.mend)
    cases: [{ value: mended, steps: [{ name: out, type: return, value: { sum: $(steps.sum), mend: $(steps.mend) } }] }]
  - { name: never, type: tool, target: work }
`;
  await atEveryAppend(flow, ({ outputs }) => expect(outputs).toEqual({ sum: '12', mend: 'mended' }));
});
