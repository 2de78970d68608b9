/** Policies decide about the fetches of feeds, which cannot ask a person (C9). */
import { describe, expect, test } from 'vitest';
import type { PolicyRule } from '../../../src/domain/policy.ts';
import { toolOf, feedOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const FETCH = toolOf(
  { type: 'builtin', entrypoint: 'web_fetch' },
  { name: 'page', effects: 'idempotent', approval: 'never' },
);
const FEED = feedOf('news', {
  source: { type: 'tool', name: 'page', action: null, params: { url: 'https://news.example/' } },
});

const calls: unknown[] = [];

async function kitWith(policies: readonly PolicyRule[], options: KitOptions = {}): Promise<SessionKit> {
  calls.length = 0;
  return await sessionKit({
    tools: [FETCH],
    agent: (agent) => ({ ...agent, feeds: [FEED] }),
    policies,
    executors: {
      tool: async ({ parameters }) => {
        calls.push(parameters);
        return { ok: true, output: 'the news' };
      },
    },
    ...options,
  });
}

const rule = (decision: PolicyRule['do'], when: string): PolicyRule => ({ when, do: decision, message: 'no news' });

describe('[C9] the fetch of a feed', () => {
  const said = async (kit: SessionKit): Promise<string> =>
    (await runText(kit, '<response final="true">$news</response>')).response;

  test('happens if no rule applies', async () => {
    const kit = await kitWith([rule('deny', 'action.feed == "weather"')]);
    expect(await said(kit)).toBe('the news');
    expect(calls).toEqual([{ url: 'https://news.example/' }]);
  });

  test.each([
    ['deny', 'A policy does not allow this feed (deployment, rule 1): no news'],
    ['ask', 'A policy wants a person to be asked, which a feed cannot do (deployment, rule 1): no news'],
  ] as const)('is not done where a rule says %s, and the feed says why', async (decision, why) => {
    const kit = await kitWith([rule(decision, 'action.feed == "news" && host(parameters.url) == "news.example"')]);
    expect(await said(kit)).toBe('[news: failed]');
    expect(calls).toEqual([]);
    expect(eventsOf(kit.events, 'approval_requested')).toEqual([]);
    expect(eventsOf(kit.events, 'context_feed_updated').map(({ data }) => data.error)).toEqual([why]);
  });

  test.each(['builtin', 'code'] as const)(
    '[D3] [K2] is judged with the parameters that a %s tool gets',
    async (type) => {
      const parameters = { type: 'object', properties: { sum: { type: 'integer', default: 500 } } };
      const implementation =
        type === 'code' ? ({ type, bindings: [], secrets: [] } as const) : ({ type, entrypoint: 'echo' } as const);
      const kit = (sum: number): Promise<SessionKit> =>
        kitWith([rule('deny', `!has(parameters.sum) || parameters.sum != ${sum}`)], {
          tools: [toolOf(implementation, { name: 'page', effects: 'pure', approval: 'never', parameters })],
          codeTools: {
            parse: async () => ({ ok: true, output: { sum: 700 } }),
            run: () => Promise.reject(new Error('not used')),
            lost: async () => undefined,
          },
          agent: (agent) => ({
            ...agent,
            feeds: [feedOf('news', { source: { type: 'tool', name: 'page', action: null, params: {} } })],
          }),
        });
      const sum = type === 'code' ? 700 : 500;
      expect(await said(await kit(sum))).toBe('the news');
      expect(calls).toEqual([{ sum }]);
      expect(await said(await kit(sum + 1))).toBe('[news: failed]');
      expect(calls).toEqual([]);
    },
  );

  test('by the rules of the manifest, too', async () => {
    const kit = await kitWith([], {
      agent: (agent) => ({ ...agent, feeds: [FEED], policies: [rule('deny', 'action.name == "page"')] }),
    });
    expect(await said(kit)).toBe('[news: failed]');
    expect(calls).toEqual([]);
  });
});

describe('[C9] a redirect', () => {
  const hosts = rule('deny', 'action.name == "page" && !(host(parameters.url) in ["a.example", "b.example"])');
  const asks = rule('ask', 'action.name == "page" && host(parameters.url) == "b.example"');

  /** What a redirect of an action's request to each URL says. */
  async function refusals(policies: readonly PolicyRule[], ...urls: string[]): Promise<unknown[]> {
    const said: unknown[] = [];
    const kit = await kitWith(policies, {
      executors: {
        tool: async (_call, { fetch, signal }) => {
          await fetch('https://a.example/', { signal });
          return { ok: true, output: null };
        },
      },
      fetch: async (_url, { redirectRefusal }) => {
        for (const url of urls) said.push(redirectRefusal === undefined ? 'not judged' : await redirectRefusal(url));
        return new Response('ok');
      },
    });
    await runText(kit, '<action name="page" id="a">{"url":"https://a.example/"}</action>');
    return said;
  }

  test('is judged like the call with its URL', async () => {
    expect(await refusals([hosts, asks], 'https://a.example/x', 'https://b.example/', 'https://evil.example/')).toEqual(
      [null, 'a policy wants a person to be asked (deployment, rule 2)', 'a policy denies it (deployment, rule 1)'],
    );
  });

  test('is not judged without policies', async () => {
    expect(await refusals([], 'https://evil.example/')).toEqual(['not judged']);
  });
});
