/** What leaves a session is redacted, and what flows inside it is not (C9). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { ChildRequest } from '../../../src/domain/ports/children.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { forked } from '../../support/forked.ts';
import { feedOf, toolOf } from '../../support/definitions.ts';
import { resultOf, runText, say, sessionKit, settle, textOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';

const EMAIL = String.raw`\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,3}\b`;
const JOE = 'joe.doe@example.com';

const kitOf = (options: KitOptions = {}): Promise<SessionKit> =>
  sessionKit({ ...options, agent: (agent) => ({ ...agent, redact: [EMAIL], ...options.agent?.(agent) }) });
const echo = (id: string, value: Json): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { value } })}</action>`;
const answer = (text: string): string => `<response final="true">${text}</response>`;

/** The text of each block, joined from its patches, which must continue each other. */
function patched(events: readonly SessionEvent[]): Map<number, string> {
  const blocks = new Map<number, string>();
  for (const { type, data } of events) {
    if (type !== 'thought' && type !== 'text' && type !== 'response') continue;
    const { segment, offset, delta } = data as { segment: number; offset: number; delta: string };
    const so = blocks.get(segment) ?? '';
    expect(offset).toBe(so.length);
    blocks.set(segment, so + delta);
  }
  return blocks;
}

async function everything({ session, events }: SessionKit): Promise<string> {
  const documents = [
    ...session.runs().map((run) => session.read().result(run)),
    ...session.runs().map((run) => session.read().prompt(run)),
    session.state(),
    session.export(),
    session.transcript(),
  ];
  const texts = await Promise.all(documents.map(textOf));
  const stored = session.events(0);
  const answers = await Promise.all(session.runs().map((run) => session.read().answer(run)));
  return [JSON.stringify([events, stored, session.feeds(), session.directoryEntry, answers]), ...texts].join('\n');
}

describe('[C9] what leaves a session', () => {
  const script = [
    `<thought>Ask ${JOE}.</thought>${echo('a', { mail: JOE, [JOE]: 1 })}`,
    `<action type="internal" mode="async" id="v">{"name": "set_variable", "parameters": {"key": "k", "value": "${JOE}"}}</action>`,
    answer(`It is $a.value.mail, or jane@example.org`),
  ];

  test('contains no match in events, documents, prompts, variables, exports, title and answer', async () => {
    const kit = await kitOf({ script, variables: { first: JOE }, history: [{ role: 'user', content: `hi ${JOE}` }] });
    const result = await say(kit, `mail to ${JOE} please`);
    expect(result.response).toBe('It is [redacted], or [redacted]');
    expect(result.actions[0]).toMatchObject({
      parameters: { value: { mail: '[redacted]', '[redacted]': 1 } },
      output: { value: { mail: '[redacted]', '[redacted]': 1 } },
    });
    await settle();
    const seen = await everything(kit);
    expect(seen).toContain('[redacted]');
    expect(seen).not.toMatch(/joe\.doe|jane@/);
    expect(kit.session.directoryEntry?.title).toBe('hi [redacted]');
  });

  test('the model and the actions have the text itself, also in a later run and after a crash', async () => {
    const seen: Json[] = [];
    const executors: KitOptions['executors'] = {
      tool: async ({ parameters }) => {
        seen.push(parameters);
        return { ok: true, output: parameters['value'] ?? null };
      },
    };
    const kit = await kitOf({ script: [echo('a', JOE), answer('done')], executors });
    await say(kit, `mail to ${JOE}`);
    expect(JSON.stringify(kit.requests[1]?.messages)).toContain(JOE);
    const later = await kitOf({
      sql: kit.sql,
      clock: kit.clock,
      script: [echo('b', 'to $a'), answer('$b')],
      executors,
    });
    const result = await say(later, 'again');
    expect(JSON.stringify(later.requests[0]?.messages)).toContain(JOE);
    expect(JSON.stringify(later.requests[0]?.messages)).not.toContain('[redacted]');
    expect(seen).toEqual([{ value: JOE }, { value: `to ${JOE}` }]);
    expect(result.response).toBe('to [redacted]');
  });

  test('a value in an answer is redacted before it becomes JSON text; later runs have it as it was', async () => {
    const value = { note: `Mail:\n${JOE}\n\t${JOE}`, other: ['a\u0001', 1] };
    const text = 'It is $a and $a.value.note\n\n$a\n';
    const kit = await kitOf({ script: [echo('a', value), answer(text)] });
    const { response } = await say(kit, 'x');
    expect(response).toContain('Mail:');
    expect(response).not.toContain('joe.doe');
    expect(response).toContain(String.raw`"note":"Mail:\n[redacted]\n\t[redacted]"`);
    const blocks = patched(kit.events);
    const end = kit.events.find(({ type }) => type === 'response_completed')?.data as {
      segment: number;
      content: string;
    };
    expect(blocks.get(end.segment)).toBe(end.content);
    expect(end.content).toBe(response);
    const later = await kitOf({ sql: kit.sql, clock: kit.clock, script: [answer('ok')] });
    await say(later, 'again');
    expect(JSON.stringify(later.requests[0]?.messages)).toContain(String.raw`Mail:\\n${JOE}`);
  });

  test('what a cut quotes of a match is hidden in parameters and messages', async () => {
    const card = String.raw`\b\d(?:[ -]?\d){12,18}\b`;
    const long = `${'n'.repeat(limits.shownParametersChars - 30)} 4111111111111111 ${'n'.repeat(60)}`;
    const name = `${'n'.repeat(limits.excerptChars - 13)} 4111111111111111`;
    const unknown = `<action type="tool" mode="async" id="b">${JSON.stringify({ name, parameters: {} })}</action>`;
    const kit = await sessionKit({
      script: [echo('a', long.slice(12)) + echo('c', long) + unknown, answer('done')],
      agent: (agent) => ({ ...agent, redact: [card] }),
    });
    await say(kit, 'x');
    const shown = await everything(kit);
    expect(shown).toContain('[cut: ');
    expect(shown).not.toMatch(/4111/);
  });

  test('an answer that is cut at its limit does not end with a part of a match', async () => {
    const long = `${'n '.repeat(limits.responseBytes / 2 - 5)}${JOE} and more`;
    const kit = await kitOf({ script: [answer(long)] });
    const { response } = await say(kit, 'x');
    expect(response).toMatch(/n \[redacted\]\n\[response cut at/);
    expect([...patched(kit.events).values()]).toEqual([response]);
  });

  test('names of documents and schemas are not text', async () => {
    const names = 'user|value|id|role|type|content|value|parameters|question|properties|metadata|generations|assistant';
    const kit = await sessionKit({
      script: [`<thought>the user</thought>${answer('a value')}`],
      agent: (agent) => ({ ...agent, redact: [String.raw`\b(?:${names})\b`], feeds: [feedOf('news')] }),
    });
    const { response } = await say(kit, 'the role of a user');
    expect(response).toBe('a [redacted]');
    const [feed = {}] = kit.session.feeds();
    expect(Object.keys(feed).filter((name) => name.includes('redacted'))).toEqual([]);
    expect(feed).toMatchObject({ id: 'news', enabled: true });
    const run = kit.session.runs()[0];
    if (run === undefined) throw new Error('no run');
    const prompt = JSON.parse(await textOf(kit.session.read().prompt(run))) as {
      readonly generations: readonly {
        readonly messages: readonly { readonly role: string; readonly content: string }[];
      }[];
    };
    const messages = prompt.generations[0]?.messages ?? [];
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(messages[1]?.content).toContain('the [redacted] of a [redacted]');
    const [line = ''] = (await textOf(kit.session.transcript())).split('\n');
    expect((JSON.parse(line) as (typeof prompt.generations)[0]).messages.map(({ role }) => role)).toContain(
      'assistant',
    );
  });

  test.each([100, 10_000, 400_000])(
    'a result of %i characters is whole for later actions, after a restart and in a fork',
    async (chars) => {
      const value = `${JOE} `.repeat(Math.ceil(chars / JOE.length));
      const lengths: number[] = [];
      const executors: KitOptions['executors'] = {
        tool: async ({ parameters }) => {
          lengths.push(JSON.stringify(parameters).length);
          return { ok: true, output: parameters['other'] === undefined ? value : 'ok' };
        },
      };
      const named = `<action type="tool" mode="async" id="a">{"name": "echo", "parameters": {"value": 1}, "output_key": "long"}</action>`;
      const uses = `<action type="tool" mode="async" id="b">{"name": "echo", "parameters": {"value": "$long", "other": 1}}</action>`;
      const kit = await kitOf({ script: [named, answer('done')], executors });
      await say(kit, 'x');
      const sql = await forked(kit.session, 1);
      for (const host of [{ sql: kit.sql }, { sql }]) {
        const next = await kitOf({ ...host, clock: kit.clock, script: [uses, answer('done')], executors });
        await say(next, 'y');
        expect(JSON.stringify(next.requests[0]?.messages)).toContain(JOE);
        expect(JSON.stringify(next.session.events(0))).not.toContain(JOE);
      }
      const whole = JSON.stringify({ value, other: 1 }).length;
      expect(lengths).toEqual([11, whole, whole]);
    },
  );

  test('streams redacted text whose patches are the final text, in pieces of any size', async () => {
    const text = `<thought>about ${JOE}, a friend</thought><response final="true">Write to ${JOE} or x@y.zz, now.</response>`;
    for (const size of [1, 3, 7, 1_000]) {
      const stream = async function* (): AsyncGenerator<ModelDelta> {
        for (let at = 0; at < text.length; at += size) yield { type: 'text', text: text.slice(at, at + size) };
        yield { type: 'finish', reason: 'stop' };
      };
      const kit = await kitOf({ stream });
      const { response } = await say(kit, 'x');
      const ends = kit.events.flatMap(({ data }) => ('content' in data && 'segment' in data ? [data] : []));
      const blocks = patched(kit.events);
      expect(ends.map(({ segment }) => blocks.get(Number(segment)))).toEqual(ends.map(({ content }) => content));
      expect(ends.map(({ content }) => content)).toEqual([
        'about [redacted], a friend',
        'Write to [redacted] or [redacted], now.',
      ]);
      expect(response).toBe('Write to [redacted] or [redacted], now.');
    }
  });

  test('a client that connects late gets the redacted text of the open blocks, without what still waits', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stream = async function* (): AsyncGenerator<ModelDelta> {
      yield { type: 'text', text: `<response>To ${JOE} and joe@exam` };
      await promise;
      yield { type: 'text', text: 'ple.com.</response>' };
      yield { type: 'finish', reason: 'stop' };
    };
    const kit = await kitOf({ stream });
    const run = await send(kit, 'x');
    await settle();
    expect(kit.session.openBlocks().map(({ data }) => data)).toMatchObject([
      { offset: 0, delta: 'To [redacted] and ' },
    ]);
    resolve();
    await kit.session.ended(run.run);
    expect((await resultOf(kit.session, kit.session.run(run.runId))).response).toBe('To [redacted] and [redacted].');
  });

  test('raw tokens are redacted as one text', async () => {
    const stream = async function* (): AsyncGenerator<ModelDelta> {
      for (const unit of answer(`to ${JOE}.`)) yield { type: 'text', text: unit };
      yield { type: 'finish', reason: 'stop' };
    };
    const kit = await kitOf({ stream });
    const run = await send(kit, 'x', { tokens: true });
    await kit.session.ended(run.run);
    const tokens = kit.events.flatMap(({ type, data }) => (type === 'llm_token' ? [data.token] : []));
    expect(tokens.join('')).toBe(answer('to [redacted].'));
  });

  test('live output of an action is redacted, although a match is split between pieces', async () => {
    const kit = await kitOf({
      executors: {
        tool: async (_call, { progress }) => {
          for (const text of ['so joe.d', 'oe@exam', 'ple.com is', ' it, joe@e.x'])
            progress({ stream: 'stdout', text });
          progress({ stream: 'stderr', text: 'on stderr' });
          return { ok: false, error: { code: 'x', message: `no ${JOE}`, retryable: false } };
        },
      },
    });
    const result = await runText(kit, echo('a', 1));
    const shown = kit.events.flatMap(({ type, data }) =>
      type === 'progress' && data['stream'] === 'stdout' ? [data['text']] : [],
    );
    expect(shown.join('')).toBe('so [redacted] is it, [redacted]');
    expect(result.actions[0]?.error).toMatchObject({ message: 'no [redacted]' });
  });

  test('base64 of files is not text', async () => {
    const file = { name: 'a.bin', content_type: 'application/octet-stream', base64: '4111111111111111' };
    const kit = await kitOf({
      agent: (agent) => ({ ...agent, redact: [String.raw`\d{16}`] }),
      executors: { tool: async () => ({ ok: true, output: { files: [file], note: '4111111111111111' } }) },
    });
    const { actions } = await runText(kit, echo('a', 1));
    expect(actions[0]?.output).toEqual({ files: [file], note: '[redacted]' });
  });
});

describe('[C9] patterns', () => {
  test('of the deployment and of the agent count together', async () => {
    const kit = await kitOf({ redactPatterns: ['S3cret'] });
    expect((await runText(kit, answer(`S3cret of ${JOE}`))).response).toBe('[redacted] of [redacted]');
  });

  test('bind the sessions that actions start, and those of a parent bind the child', async () => {
    const requests: ChildRequest[] = [];
    const kit = await kitOf({
      redactPatterns: ['S3cret'],
      agent: (agent) => ({ ...agent, imports: { ...agent.imports, agents: ['summarizer'] } }),
      children: {
        run: async (request) => {
          requests.push(request);
          return { sessionId: 's', status: 'completed', output: 'x', error: null, spent: SPENT };
        },
      },
    });
    await runText(
      kit,
      `<action type="agent" mode="async" id="a">{"name": "summarizer", "parameters": {"message": "m ${JOE}"}}</action>`,
    );
    expect(requests).toMatchObject([{ message: `m ${JOE}`, redact: ['S3cret', EMAIL] }]);
    const child = await sessionKit({ kind: 'child', script: [answer(`S3cret of ${JOE}`)] });
    const [request] = requests;
    if (request === undefined) throw new Error('no child');
    const run = await child.session.child(request);
    await child.session.ended(run.run);
    expect(await child.session.read().outcome(child.session.run(run.runId))).toMatchObject({
      response: '[redacted] of [redacted]',
    });
    // After a crash of the child's host, too.
    const next = await sessionKit({ sql: child.sql, clock: child.clock, kind: 'child' });
    expect(await textOf(next.session.export())).not.toContain(JOE);
  });

  test('a run without patterns stores nothing more', async () => {
    const kit = await sessionKit();
    await runText(kit, `${echo('a', JOE)}${answer('$a')}`);
    expect(JSON.stringify(kit.session.events(0))).toContain(JOE);
    const states = JSON.stringify(kit.sql.exec(`SELECT state FROM ${EVERY_EVENT}`));
    expect(states).not.toContain('raw');
  });

  test('a pattern that is not valid is an error, instead of showing the text', async () => {
    const kit = await kitOf({ redactPatterns: ['a+'] });
    await expect(runText(kit, answer(JOE))).rejects.toThrow('The pattern "a+" has no greatest length');
    expect(JSON.stringify(kit.events)).not.toContain(JOE);
  });
});

const SPENT = { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 0 };

describe('[C9] which patterns bind the session of an uploaded agent', () => {
  const history = [{ role: 'user', content: `hi ${JOE}` }] as const;
  const uploaded = { uploaded: true, script: [answer('ok'), answer('ok')], history, variables: { v: JOE } } as const;

  test('before the first run, those at its creation', async () => {
    const kit = await kitOf({ ...uploaded, record: { redact: [EMAIL] } });
    const seen = await everything(kit);
    expect(seen).toContain('"v":"[redacted]"');
    expect(seen).not.toContain(JOE);
    expect(seen).not.toContain(EMAIL.slice(0, 12));
    expect(kit.session.directoryEntry?.title).toBe('hi [redacted]');
  });

  test('after a run, those of its definition, also in the title', async () => {
    const kit = await kitOf({ ...uploaded, record: { redact: [] } });
    expect(kit.session.directoryEntry?.title).toBe(`hi ${JOE}`);
    await say(kit, 'x');
    expect(kit.session.directoryEntry?.title).toBe('hi [redacted]');
    expect(await everything(kit)).not.toContain(JOE);
  });

  test('in a fork, those of the other session, until it has a run of its own', async () => {
    const kit = await kitOf({ ...uploaded, record: { redact: [] } });
    await say(kit, `mail to ${JOE}`);
    expect(kit.session.patterns).toEqual([EMAIL]);
    const sql = await forked(kit.session, 1, null, { redact: kit.session.patterns ?? [] });
    const fork = await kitOf({ ...uploaded, sql });
    expect(fork.session.directoryEntry?.title).toBe('hi [redacted]');
    expect(await textOf(fork.session.export())).not.toContain(JOE);
    expect(fork.session.patterns).toEqual([EMAIL]);
    const free = await sessionKit({ ...uploaded, sql, agent: (agent) => ({ ...agent, redact: [] }) });
    await say(free, 'x');
    expect(await textOf(free.session.export())).toContain(JOE);
  });

  test('if the agent was removed, those of the last run that had it', async () => {
    let isGone = false;
    const kit = await kitOf({ ...uploaded, record: { redact: [] }, gone: () => isGone });
    await say(kit, 'x');
    isGone = true;
    const run = await send(kit, `mail to ${JOE}`);
    await kit.session.ended(run.run).catch(() => undefined);
    const text = await textOf(kit.session.export());
    expect(text).toContain('mail to [redacted]');
    expect(text).not.toContain(JOE);
    // A fork has the patterns in its record.
    const fork = await kitOf({ ...uploaded, sql: await forked(kit.session, 2, null, { redact: ['mail'] }) });
    expect(fork.session.patterns).toEqual(['mail']);
  });

  test('if they are unknown, all text is hidden', async () => {
    const kit = await kitOf(uploaded);
    expect(kit.session.patterns).toBeNull();
    expect(JSON.parse(await textOf(kit.session.state()))).toMatchObject({ variables: { v: '[redacted]' } });
    expect(kit.session.directoryEntry?.title).toBe('[redacted]');
    expect(await textOf(kit.session.export())).not.toMatch(/hi|joe/);
    await say(kit, 'hello');
    expect(kit.session.directoryEntry?.title).toBe('hi [redacted]');
    expect(await textOf(kit.session.export())).toContain('hello');
  });

  test('are looked up once for each run, not for each text', async () => {
    let lookups = 0;
    const gone = (): boolean => {
      lookups += 1;
      return false;
    };
    const kit = await sessionKit({ uploaded: true, script: [answer('ok'), answer('ok')], gone });
    await say(kit, 'x');
    kit.session.outgoing();
    const before = lookups;
    for (let times = 0; times < 50; times += 1) {
      kit.session.outgoing().text('x');
      void kit.session.directoryEntry;
      await textOf(kit.session.state());
    }
    expect(lookups).toBe(before);
    await say(kit, 'y');
    const after = lookups;
    kit.session.outgoing();
    kit.session.outgoing();
    expect(lookups - after).toBeLessThanOrEqual(1);
  });
});

describe('[C9] approvals and client tools', () => {
  const guarded = toolOf(
    { type: 'builtin', entrypoint: 'echo' },
    { name: 'send', approval: 'always', parameters: { type: 'object', additionalProperties: true } },
  );
  const sending = `<action type="tool" mode="async" id="s">{"name": "send", "parameters": {"to": "${JOE}"}}</action>`;

  test('a person sees redacted parameters and that they are; exactly the call itself is executed, after a crash too', async () => {
    const executed: Json[] = [];
    const executors: KitOptions['executors'] = {
      tool: async ({ parameters }) => {
        executed.push(parameters);
        return { ok: true, output: 'sent' };
      },
    };
    const kit = await kitOf({ tools: [guarded], executors, script: [sending, answer('done')] });
    await say(kit, 'x');
    const id = `apr_${'1'.repeat(32)}`;
    const next = await kitOf({ sql: kit.sql, clock: kit.clock, tools: [guarded], executors, script: [answer('done')] });
    await next.session.recover();
    await settle();
    const plain = await sessionKit({ tools: [guarded], script: [sending] });
    await say(plain, 'x');
    // Those of the call itself would reveal a short text to a reader who tries all.
    const text = JSON.stringify({ parameters: { to: '[redacted]' }, inputs: {} });
    const sha256 = createHash('sha256').update(text).digest('hex');
    const bytes = text.length;
    expect(plain.session.approval(id).sha256).not.toBe(sha256);
    const shown = { parameters: { to: '[redacted]' }, redacted: true, sha256, bytes };
    expect(plain.session.approval(id)).toMatchObject({ parameters: { to: JOE } });
    expect(plain.session.approval(id)).not.toHaveProperty('redacted');
    expect(next.session.approval(id)).toMatchObject(shown);
    expect(next.session.openApprovals({ limit: 9, after: null })).toMatchObject([shown]);
    expect(kit.events.find(({ type }) => type === 'approval_requested')?.data).toMatchObject(shown);
    await next.session.resolveApproval(id, true, `ask ${JOE}`);
    await settle();
    expect(executed).toEqual([{ to: JOE }]);
    expect(next.session.approval(id).note).toBe('ask [redacted]');
    expect(await everything(next)).not.toContain(JOE);
  });

  test('a request that is too long for its event has no digest of the call itself either', async () => {
    const long = { to: JOE, more: 'x '.repeat(limits.approvalChars) };
    const script = [
      `<action type="tool" mode="async" id="s">${JSON.stringify({ name: 'send', parameters: long })}</action>`,
    ];
    const kit = await kitOf({ tools: [guarded], script });
    await say(kit, 'x');
    const asked = kit.events.find(({ type }) => type === 'approval_requested')?.data;
    const text = JSON.stringify({ parameters: { ...long, to: '[redacted]' }, inputs: {} });
    const sha256 = createHash('sha256').update(text).digest('hex');
    expect(asked).toMatchObject({ complete: false, redacted: true, sha256, bytes: text.length });
    expect(kit.session.approval(`apr_${'1'.repeat(32)}`)).toMatchObject({ redacted: true, sha256, bytes: text.length });
  });

  test('a client tool gets redacted parameters, because they leave', async () => {
    const tool = toolOf(
      { type: 'client' },
      { name: 'ask_client', parameters: { type: 'object', additionalProperties: true } },
    );
    const call = `<action type="tool" mode="async" id="c">{"name": "ask_client", "parameters": {"to": "${JOE}"}}</action>`;
    const kit = await kitOf({ tools: [tool], script: [call] });
    const result = await say(kit, 'x');
    expect(result.pending).toMatchObject([{ parameters: { to: '[redacted]' } }]);
  });
});
