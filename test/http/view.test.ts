/** A token with `view` reads a session without prompts, thoughts and feeds (T1). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { AgentDefinition } from '../../src/domain/manifests/agent.ts';
import type { SkillDefinition } from '../../src/domain/manifests/skill.ts';
import type { SeededCall, SeededMessage } from '../../src/domain/seeded.ts';
import { OPERATIONS } from '../../src/http/operations.ts';
import type { Operation, OperationName, Scope } from '../../src/http/operations.ts';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import { VIEW } from '../../src/http/view.ts';
import { checkedSession } from '../support/response-check.ts';
import { largeTool, largeTools } from '../support/many-tools.ts';
import { runText, settle, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { userFactsKit } from '../support/user-facts.ts';

const viewOf = VIEW.event;
const THOUGHT = 'a private musing';
/** The value of a feed, which no action has as its parameter. */
const FEED = '86421753';
/** In the definition of the feed. */
const DEFINITION = '86421752';
const SOURCE = { type: 'tool', name: 'calculator', params: { expression: '86421752 + 1' } };
const PROGRAM = [
  `<thought>${THOUGHT} one<action type="nonsense" id="b">{</action></thought>`,
  `<action type="internal" id="f">{"name":"add_context_feed","parameters":${JSON.stringify({ id: 'f', source: SOURCE })}}</action>`,
  '<action type="internal" id="l" depends_on="f">{"name":"list_context_feeds","parameters":{}}</action>',
  '<action type="internal" id="s">{"name":"set_variable","parameters":{"key":"k","value":"a public value"}}</action>',
  '<action type="internal" id="k">{"name":"load_skill","parameters":{"name":"a-skill"}}</action>',
  '<response final="false">a public answer $l.0.id</response>',
].join('\n');

function fetchOf(
  kit: SessionKit,
): (path: string, scopes: readonly Scope[] | null, init?: RequestInit) => Promise<string> {
  const fetch = checkedSession({
    session: kit.session,
    clock: kit.clock,
    destroy: async () => undefined,
    log: () => undefined,
  });
  return async (path, scopes, init = {}) => {
    const headers: Record<string, string> = scopes === null ? {} : { [SCOPES_HEADER]: scopes.join(' ') };
    const response = await fetch(new Request(`http://session${path}`, { ...init, headers }));
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return await response.text();
    // What is in the journal, and nothing live.
    const reader = response.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    return new TextDecoder().decode(first?.value);
  };
}

/** Its text is written for the model (C8). */
const SKILL: SkillDefinition = {
  kind: 'Skill',
  name: 'a-skill',
  version: '1',
  summary: '',
  description: 'a public description',
  tags: [],
  metadata: {},
  text: 'private instructions',
  files: [],
};

/** Text that only a thought, a feed or a skill has. */
const PRIVATE = /private|8642175[23]|"thought|context_feed_updated|llm_token/;

async function told(): Promise<SessionKit> {
  return await sessionKit({ script: [PROGRAM, '<response final="true">a public answer</response>'], skills: [SKILL] });
}

describe('T1: view', () => {
  test('no operation that it allows shows a thought, a feed or the text of a skill; read shows all', async () => {
    const kit = await told();
    const ask = fetchOf(kit);
    const body = JSON.stringify({ content: 'hello', stream: false });
    const answer = await ask('/message', ['message', 'view'], { method: 'POST', body });
    await settle();
    expect(answer).toContain('a public answer');
    expect(answer).not.toMatch(PRIVATE);
    const [run] = kit.session.runs(1);
    const seen: Record<'view' | 'read', string> = { view: '', read: '' };
    for (const name of Object.keys(OPERATIONS) as OperationName[]) {
      const { scopes = [] }: Operation = OPERATIONS[name];
      if (!name.startsWith('GET ') || !scopes.includes('view')) continue;
      const path =
        name
          .replace('GET /agent/session/:id', '')
          .replace(':run', run?.runId ?? '')
          .replace(/:\w+/, 'x') || '/';
      const shown = await ask(path, ['view']);
      expect([name, PRIVATE.exec(shown)?.[0]]).toEqual([name, undefined]);
      seen.view += shown;
      seen.read += await ask(path, ['read', 'view']);
    }
    expect(seen.view).toContain('a public value');
    expect(seen.view).toContain('a public answer');
    expect(seen.read).toContain(THOUGHT);
    expect(seen.read).toContain(FEED);
    expect(seen.read).toContain(DEFINITION);
    expect(seen.read).toContain(SKILL.text);
  });

  test('the export of an execution has its program only with read', async () => {
    const kit = await sessionKit();
    await runText(kit, PROGRAM);
    const ask = fetchOf(kit);
    expect(await ask('/export', ['view'])).not.toMatch(PRIVATE);
    expect(await ask('/export', ['read'])).toContain(`<thought>${THOUGHT}`);
  });

  test('[C8] the text of a loaded skill needs read, in events, runs, the export and artifacts', async () => {
    const text = `a private rule\n${'of the operator '.repeat(4_000)}`;
    const skill: SkillDefinition = {
      kind: 'Skill',
      name: 'forms',
      version: '1',
      summary: 'Fills forms.',
      description: 'Fills forms.',
      tags: [],
      metadata: {},
      text,
      files: [],
    };
    const kit = await sessionKit({
      skills: [skill],
      agent: (agent: AgentDefinition) => ({ ...agent, imports: { ...agent.imports, skills: ['forms'] } }),
      script: [
        '<action type="internal" name="load_skill" id="s">{"name":"forms"}</action>',
        '<response final="true">a public answer</response>',
      ],
    });
    const ask = fetchOf(kit);
    const body = JSON.stringify({ content: 'fill it', stream: false });
    const answer = await ask('/message', ['message', 'view'], { method: 'POST', body });
    await settle();
    const [run] = kit.session.runs(1);
    const paths = ['/events', '/export', '/artifacts', `/runs/${run?.runId ?? ''}`];
    const seen = async (scopes: readonly Scope[]): Promise<string> =>
      (await Promise.all(paths.map((path) => ask(path, scopes)))).join('\n');
    const viewed = answer + (await seen(['view']));
    expect(viewed).toContain('a public answer');
    expect(viewed).toContain('skill_loaded');
    expect(viewed).not.toMatch(/a private rule|of the operator/);
    expect(await seen(['read'])).toContain('a private rule');
  });

  test('[L4] what describe_tools tells the model is a part of the prompt, and needs read', async () => {
    const summary = 'a private summary';
    const kit = await sessionKit({
      tools: [largeTool(0, { summary }), ...largeTools(40).slice(1)],
      script: [
        '<action type="internal" name="describe_tools" id="d">{"names":["thing_0"]}</action>',
        '<response final="true">a public answer</response>',
      ],
    });
    const ask = fetchOf(kit);
    const body = JSON.stringify({ content: 'do it', stream: false });
    const viewed =
      (await ask('/message', ['message', 'view'], { method: 'POST', body })) + (await ask('/events', ['view']));
    expect(viewed).toContain('a public answer');
    expect(viewed).not.toContain(summary);
    expect(await ask('/events', ['read'])).toContain(summary);
  });

  test('[C10] facts about the user are a feed, and need read', async () => {
    const kit = await sessionKit({
      userFacts: userFactsKit(() => 1),
      record: { user_id: 'anna' },
      agent: (agent: AgentDefinition) => ({
        ...agent,
        memory: { ...agent.memory, facts: { max: 5, maxTokens: 200 } },
      }),
      script: [
        '<action type="internal" name="remember" id="r">{"key":"a_key","value":"a private fact"}</action>',
        '<action type="internal" name="forget" id="f">{"key":"a_key"}</action>',
        '<response final="true">a public answer</response>',
      ],
    });
    const ask = fetchOf(kit);
    const body = JSON.stringify({ content: 'hi', stream: false });
    const viewed =
      (await ask('/message', ['message', 'view'], { method: 'POST', body })) + (await ask('/events', ['view']));
    expect(viewed).toContain('a public answer');
    expect(viewed).toContain('"change":"remembered"');
    expect(viewed).not.toMatch(/a private fact|a_key/);
    expect(await ask('/events', ['read'])).toContain('a private fact');
  });

  test('without it, a token that may only send messages gets the whole answer', async () => {
    const ask = fetchOf(await told());
    const body = JSON.stringify({ content: 'hello', stream: false });
    expect(await ask('/message', ['message'], { method: 'POST', body })).toContain(THOUGHT);
  });

  test('hides the thoughts and feeds of sub-agents, at any depth', () => {
    const event = (type: string, data: object): SessionEvent =>
      ({ seq: null, type, session_id: 's', run_id: 'r', iteration: 1, timestamp: 0, data }) as unknown as SessionEvent;
    const nested = (inner: unknown, depth: number): SessionEvent =>
      depth === 0 ? (inner as SessionEvent) : event('progress', { event: nested(inner, depth - 1) });
    for (const depth of [0, 1, 2, 5]) {
      for (const type of ['thought', 'thought_started', 'thought_completed', 'llm_token', 'context_feed_updated']) {
        expect(viewOf(nested(event(type, { delta: THOUGHT }), depth))).toBeNull();
      }
      const shown = nested(event('response', { segment: 1, offset: 0, delta: 'x' }), depth);
      expect(viewOf(shown)).toEqual(shown);
      const rejected = nested(event('action_rejected', { code: 'c', excerpt: THOUGHT }), depth);
      expect(JSON.stringify(viewOf(rejected))).not.toContain(THOUGHT);
    }
  });

  test('[C9] [C10] hides what policies and errors say about facts', () => {
    const about = (type: string, data: object, name: string): SessionEvent =>
      ({
        seq: 1,
        type,
        session_id: 's',
        run_id: 'r',
        iteration: 1,
        timestamp: 0,
        action_id: 'a',
        action_name: name,
        data,
      }) as never;
    const applied = { decision: 'allow', source: 'deployment', rule: 1, parameters: { key: 'k', value: THOUGHT } };
    const error = { code: 'memory_full', message: `forget one first: ${THOUGHT}`, retryable: false };
    expect(viewOf(about('policy_applied', applied, 'remember'))?.data).toEqual({
      decision: 'allow',
      source: 'deployment',
      rule: 1,
    });
    expect(viewOf(about('policy_applied', applied, 'echo'))?.data).toEqual(applied);
    for (const type of ['action_failed', 'action_retrying']) {
      expect(viewOf(about(type, { error }, 'remember'))?.data).toEqual({ error: { ...error, message: '[hidden]' } });
      expect(viewOf(about(type, { error }, 'echo'))?.data).toEqual({ error });
    }
  });

  test.each([1, 2, 100])(
    'C1: hides seeded results that show feeds, and no other message (pages of %i)',
    async (limit) => {
      const call = (id: string, name: string): SeededCall => ({
        id,
        type: 'function',
        function: { name, arguments: '{}' },
      });
      const turn: SeededMessage[] = [
        { role: 'user', content: 'a public question' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [call('a', 'list_context_feeds'), call('b', 'weather'), call('c', 'add_context_feed')],
        },
        { role: 'tool', tool_call_id: 'c', content: FEED },
        { role: 'tool', tool_call_id: 'b', content: 'a public result' },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: FEED }] },
        { role: 'assistant', content: null, tool_calls: [call('a', 'weather')] },
        { role: 'tool', tool_call_id: 'a', content: 'another result' },
      ];
      const kit = await sessionKit({ history: [...turn, ...turn] });
      const ask = fetchOf(kit);
      const all = async (scopes: readonly Scope[]): Promise<string> => {
        let text = '';
        for (let query = `?limit=${limit}`; ;) {
          const page = await ask(`/history${query}`, scopes);
          text += page;
          const { next } = JSON.parse(page) as { next: string | null };
          if (next === null) return text;
          query = `?limit=${limit}&before=${next}`;
        }
      };
      for (const seen of [await all(['view']), await ask('/export', ['view'])]) {
        expect(seen).not.toContain(FEED);
        expect(seen.match(/\[hidden\]/g)).toHaveLength(4);
        for (const shown of ['a public question', 'a public result', 'another result']) {
          expect(seen.split(shown)).toHaveLength(3);
        }
      }
      for (const seen of [await all(['read', 'view']), await ask('/export', ['read'])]) {
        expect(seen).toContain(FEED);
        expect(seen).not.toContain('[hidden]');
      }
    },
  );
});
