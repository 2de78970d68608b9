import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { toEvent } from '../../src/domain/event.ts';
import type { EventData, JournaledEventType, SessionEvent } from '../../src/domain/event.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import { runIdOf } from '../../src/journal/run-id.ts';
import { RunObserver } from '../../src/telemetry/observe.ts';
import { runTrace } from '../../src/telemetry/run-trace.ts';
import { exported, EVERYTHING, treeOf } from '../support/otlp.ts';
import type { ReadPoint, ReadSpan } from '../support/otlp.ts';
import { say, sessionKit, settle } from '../support/session-kit.ts';

const echo = (id: string, parameters: object, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters, ...more })}</action>`;
const final = (text: string): string => `<response final="true">${text}</response>`;

const traceparent = (traceId: string, spanId: string): string => `00-${traceId}-${spanId}-01`;

/** An event of the journal. */
function event<T extends JournaledEventType>(type: T, data: EventData[T], at: number): SessionEvent {
  return toEvent('ses_1', at, { type, runId: 'run_1', iteration: 1, at, data });
}

const USAGE: ModelDelta = {
  type: 'usage',
  usage: { promptTokens: 100, completionTokens: 20, cachedTokens: 60, estimated: false, model: 'gpt-4.1-mini' },
};

const named = (spans: readonly ReadSpan[], name: string): ReadSpan => {
  const found = spans.find((span) => span.name === name);
  if (found === undefined) throw new Error(`no span is called ${name}: ${spans.map((span) => span.name).join(', ')}`);
  return found;
};

const valueOf = (points: readonly ReadPoint[], metric: string, attributes: object = {}): ReadPoint[] =>
  points.filter(
    (point) =>
      point.metric === metric && Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
  );

describe('[O1] the trace of a run', () => {
  test('has its generations and the attempts of its actions, with links for dependencies', async () => {
    const kit = await sessionKit({
      script: [
        `<thought>two, then one</thought>${echo('a', { n: 1 })}${echo('b', { n: 2 })}${echo('c', { sum: '$a', and: '$b' })}${final('$c')}`,
      ],
    });
    await say(kit, 'go');
    const { spans } = await exported(kit.session);
    expect(treeOf(spans)).toEqual([
      'invoke_agent assistant',
      '  chat scripted',
      '  execute_tool echo',
      '  execute_tool echo',
      '  execute_tool echo',
    ]);
    const idOf = (id: string): string =>
      spans.find((span) => span.attributes['gen_ai.tool.call.id'] === id)?.spanId ?? '';
    const last = spans.find((span) => span.attributes['gen_ai.tool.call.id'] === 'c');
    expect(last?.links.map(({ spanId }) => spanId).sort()).toEqual([idOf('a'), idOf('b')].sort());
    expect(named(spans, 'invoke_agent assistant').attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'assistant',
      'gen_ai.conversation.id': kit.session.record.session_id,
      'cortex.run.status': 'completed',
    });
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  test('has usage, model and cost of each model call', async () => {
    const kit = await sessionKit({
      script: [[{ type: 'text', text: final('hello') }, USAGE, { type: 'finish', reason: 'stop' }]],
    });
    await say(kit, 'go');
    const { spans, points } = await exported(kit.session);
    const usage = {
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 20,
      'gen_ai.usage.cache_read.input_tokens': 60,
      'cortex.usage.cost': expect.closeTo(0.00005, 3),
    };
    expect(named(spans, 'chat gpt-4.1-mini').attributes).toMatchObject(usage);
    expect(named(spans, 'invoke_agent assistant').attributes).toMatchObject(usage);
    expect(valueOf(points, 'gen_ai.client.token.usage', { 'gen_ai.token.type': 'input' })).toMatchObject([
      { sum: 100, count: 1 },
    ]);
    expect(valueOf(points, 'cortex.model.cached_tokens')).toMatchObject([{ sum: 60 }]);
    expect(valueOf(points, 'cortex.model.cost')).toHaveLength(1);
  });

  test('a model call of an action belongs to the action, and the generation keeps its own usage', async () => {
    const kit = await sessionKit({
      stream: async function* (request) {
        const isAction = request.agent === null;
        const text = isAction
          ? 'a summary'
          : `<action type="llm" mode="async" id="l" name="summarise">{"parameters": {"prompt": "x"}}</action>${final('$l')}`;
        yield { type: 'text', text };
        const promptTokens = isAction ? 7 : 500;
        yield {
          type: 'usage',
          usage: { promptTokens, completionTokens: 3, cachedTokens: 0, estimated: false, model: 'm' },
        };
        yield { type: 'finish', reason: 'stop' };
      },
    });
    await say(kit, 'go');
    const { spans, points } = await exported(kit.session);
    expect(named(spans, 'chat summarise').attributes['gen_ai.usage.input_tokens']).toBe(7);
    expect(named(spans, 'chat m').attributes['gen_ai.usage.input_tokens']).toBe(500);
    expect(named(spans, 'invoke_agent assistant').attributes['gen_ai.usage.input_tokens']).toBe(507);
    const [input] = valueOf(points, 'gen_ai.client.token.usage', { 'gen_ai.token.type': 'input' });
    expect(input).toMatchObject({ sum: 507, count: 2 });
  });

  test('a retried action has a span for each attempt, linked to the one before', async () => {
    let calls = 0;
    const kit = await sessionKit({
      executors: {
        tool: async () => {
          calls += 1;
          if (calls === 1) return { ok: false, error: { code: 'fetch_failed', message: 'busy', retryable: true } };
          return { ok: true, output: 1 };
        },
      },
      script: [`${echo('a', {}, { retry: 2 })}${final('$a')}`],
    });
    const said = say(kit, 'go');
    await settle();
    await kit.clock.advance(60_000);
    await said;
    const { spans, points } = await exported(kit.session);
    const attempts = spans.filter(({ name }) => name === 'execute_tool echo').toSorted((a, b) => a.start - b.start);
    expect(attempts.map(({ attributes }) => attributes['cortex.action.attempt'])).toEqual([1, 2]);
    expect(attempts[0]).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': 'fetch_failed', 'cortex.action.retried': true },
    });
    expect(attempts[1]?.links).toMatchObject([{ spanId: attempts[0]?.spanId, attributes: { 'cortex.link': 'retry' } }]);
    expect(valueOf(points, 'cortex.action.retries', { 'error.type': 'fetch_failed' })).toMatchObject([{ sum: 1 }]);
    expect(valueOf(points, 'cortex.action.ends', { 'cortex.action.status': 'completed' })).toMatchObject([{ sum: 1 }]);
  });

  test('the time in which it waited for a person is a span of its own', async () => {
    const kit = await sessionKit({
      policies: [{ when: null, do: 'ask', message: null }],
      script: [`${echo('a', { n: 1 })}${final('$a')}`],
    });
    const run = await kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    await kit.session.ended(run.run);
    const before = await exported(kit.session);
    expect(before.spans.map(({ name }) => name)).not.toContain('invoke_agent assistant');
    await kit.clock.advance(90_000);
    await kit.session.resolveApproval(kit.session.openApprovalIds[0] ?? '', true, null);
    await kit.session.ended(run.run);
    const { spans, points } = await exported(kit.session);
    const approval = named(spans, 'approval echo');
    expect(approval.end - approval.start).toBeGreaterThanOrEqual(90_000);
    expect(approval.attributes['cortex.approval.decision']).toBe('approved');
    // the wait for a person is not a wait for a slot
    const attempt = named(spans, 'execute_tool echo');
    expect(attempt.attributes['cortex.action.queue_ms']).toBeLessThan(1_000);
    expect(valueOf(points, 'cortex.approval.duration')).toMatchObject([{ count: 1 }]);
  });

  test('an id that is used again in a later iteration is another action, also while the first one runs', async () => {
    const pending = Promise.withResolvers<void>();
    const traces: (string | undefined)[] = [];
    const kit = await sessionKit({
      sampling: EVERYTHING,
      executors: {
        tool: async ({ parameters, trace }) => {
          traces.push(trace);
          if (parameters['slow'] === true) await pending.promise;
          return { ok: true, output: 1 };
        },
      },
      script: [
        '<action type="tool" mode="fire_and_forget" id="a">{"name": "echo", "parameters": {"slow": true}}</action><response final="false">wait</response>',
        `${echo('a', { slow: false })}${final('$a')}`,
      ],
    });
    await say(kit, 'go');
    pending.resolve();
    await settle();
    await settle();
    const { spans, points } = await exported(kit.session);
    const attempts = spans.filter(({ name }) => name === 'execute_tool echo');
    expect(attempts.map(({ attributes }) => attributes['cortex.iteration'])).toEqual([2, 1]);
    expect(new Set(attempts.map(({ spanId }) => spanId)).size).toBe(2);
    const sent = attempts.map(({ traceId, spanId }) => traceparent(traceId, spanId));
    expect(traces.toSorted()).toEqual(sent.toSorted());
    const [completed] = valueOf(points, 'cortex.action.ends', { 'cortex.action.status': 'completed' });
    expect(completed?.sum).toBe(2);
  });

  test('the usage of a feed is not that of the generation', async () => {
    const events = [
      event('agent_started', { agent: 'x', version: '1', source: 'model', model: 'm' }, 1),
      event('iteration_started', { iteration: 1 }, 2),
      event('usage', { prompt_tokens: 7, completion_tokens: 0, cached_tokens: 0, model: 'f', feed: true }, 3),
      event('response_started', { final: true }, 10),
      event('usage', { prompt_tokens: 500, completion_tokens: 1, cached_tokens: 0, model: 'm' }, 20),
      event('iteration_completed', { iteration: 1, final: true }, 30),
    ];
    const observer = new RunObserver();
    const seen = events.flatMap((one) => observer.take(one));
    expect(seen).toMatchObject([
      { kind: 'call', usage: { inputTokens: 7 } },
      { kind: 'generation', startMs: 2, firstMs: 10, endMs: 20, usage: { inputTokens: 500 }, error: null },
    ]);
  });

  test('a generation that fails has its code, and ends with the failure', async () => {
    const pending = Promise.withResolvers<void>();
    let calls = 0;
    const kit = await sessionKit({
      agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxIterations: 3 } }),
      executors: {
        tool: async () => {
          await pending.promise;
          return { ok: true, output: 1 };
        },
      },
      stream: async function* () {
        calls += 1;
        if (calls > 1) {
          yield { type: 'text', text: final('done') };
          yield { type: 'finish', reason: 'stop' };
          return;
        }
        yield { type: 'text', text: echo('a', {}) };
        throw new EngineError('model_unavailable', 'the connection was lost');
      },
    });
    const said = say(kit, 'go');
    await settle();
    await kit.clock.advance(20_000);
    pending.resolve();
    await said;
    const { spans } = await exported(kit.session);
    const [first, second] = spans.filter(({ name }) => name === 'chat scripted').toSorted((a, b) => a.start - b.start);
    expect(first).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'model_unavailable' } });
    expect((first?.end ?? 0) - (first?.start ?? 0)).toBeLessThan(10_000);
    expect(second?.status).toBeNull();
  });

  test('an action without an attempt is an event of the run', async () => {
    const kit = await sessionKit({
      script: [`${echo('a', {}, { depends_on: ['nowhere'] })}${final('no')}`, final('no')],
    });
    await say(kit, 'go');
    const { spans, points } = await exported(kit.session);
    expect(named(spans, 'invoke_agent assistant').events).toMatchObject([
      { name: 'cortex.action.rejected', attributes: { 'error.type': 'unknown_dependency' } },
    ]);
    // Of what was rejected, the model may have written any text as the id and the name.
    const [rejected] = named(spans, 'invoke_agent assistant').events;
    expect(Object.keys(rejected?.attributes ?? {})).toEqual(['cortex.action.type', 'error.type']);
    expect(valueOf(points, 'cortex.action.ends', { 'cortex.action.status': 'rejected' })).toHaveLength(1);
  });

  test('a failed run has its code, and no message', async () => {
    const kit = await sessionKit({
      stream: async function* () {
        yield await Promise.reject<ModelDelta>(new Error('secret detail'));
      },
    });
    await say(kit, 'go');
    const { spans, bodies } = await exported(kit.session);
    expect(named(spans, 'invoke_agent assistant')).toMatchObject({
      status: { code: 2 },
      attributes: { 'cortex.run.status': 'failed', 'error.type': expect.any(String) },
    });
    expect(bodies.join('')).not.toContain('secret detail');
  });
});

describe('[O1] content', () => {
  const script = [
    `<thought>hidden thought</thought>${echo('a', { word: 'parameter-text' })}${final('answer-text $a.word')}`,
  ];
  const TEXTS = ['question-text', 'hidden thought', 'parameter-text', 'answer-text'];

  test('is not exported', async () => {
    const kit = await sessionKit({ script });
    await say(kit, 'question-text');
    const { bodies } = await exported(kit.session);
    expect(TEXTS.filter((text) => bodies.join('').includes(text))).toEqual([]);
  });

  test('is exported if the operator asks for it, without what is redacted', async () => {
    const kit = await sessionKit({ script, redactPatterns: ['parameter-t\\w{1,10}'] });
    await say(kit, 'question-text with parameter-text');
    const { spans, bodies } = await exported(kit.session, { hasContent: true });
    const root = named(spans, 'invoke_agent assistant').attributes;
    expect(root['gen_ai.input.messages']).toContain('question-text');
    expect(root['gen_ai.output.messages']).toContain('answer-text');
    expect(named(spans, 'execute_tool echo').attributes).toMatchObject({
      'gen_ai.tool.call.arguments': expect.stringContaining('word'),
      'gen_ai.tool.call.result': expect.stringContaining('word'),
    });
    expect(bodies.join('')).not.toContain('parameter-text');
  });
});

describe('[O1] what is called', () => {
  const sampling = EVERYTHING;
  test('the model and the tool get the spans that are exported for them', async () => {
    const seen: string[] = [];
    const kit = await sessionKit({
      sampling,
      executors: {
        tool: async ({ trace = '' }) => {
          seen.push(trace);
          return { ok: true, output: 1 };
        },
      },
      script: [`${echo('a', {})}${final('$a')}`],
    });
    await say(kit, 'go');
    const { spans } = await exported(kit.session);
    const [chat, tool] = ['chat scripted', 'execute_tool echo'].map((name) => named(spans, name));
    expect(kit.requests[0]?.trace).toBe(traceparent(chat?.traceId ?? '', chat?.spanId ?? ''));
    expect(seen).toEqual([traceparent(tool?.traceId ?? '', tool?.spanId ?? '')]);
  });

  test('without an export, nothing is sent', async () => {
    const kit = await sessionKit({ script: [`${echo('a', {})}${final('$a')}`] });
    await say(kit, 'go');
    expect(kit.requests[0]).not.toHaveProperty('trace');
  });

  test('the trace of the caller is continued, also after a crash', async () => {
    const trace = traceparent('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');
    const kit = await sessionKit({ sampling, script: [final('hello')] });
    const message = { content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null, trace } as const;
    const run = await kit.session.message(message);
    await kit.session.ended(run.run);
    const again = await sessionKit({ sql: kit.sql, sampling });
    const { spans } = await exported(again.session);
    const root = named(spans, 'invoke_agent assistant');
    expect(root).toMatchObject({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: '00f067aa0ba902b7' });
    const own = runTrace(runIdOf(again.session.record, 1), null, sampling);
    expect(root.spanId).toBe(own?.root().spanId);
  });
});
