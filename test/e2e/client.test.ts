/** Our own client against a real system, in Node and on a page of another origin, over a connection that is cut (K3). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from 'playwright-core';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm, StreamStep } from '../../cli/scripted-llm/server.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { Client, emptyMessage, fold } from '../../src/client/index.ts';
import type { Message, Run } from '../../src/client/index.ts';
import { NOTE, PHOTO_CHARS, scenario } from '../client/scenario.ts';
import type { ScenarioOptions, ScenarioReport } from '../client/scenario.ts';
import { bundleForPage, noChromium, openPage, openChromium, startPageSite } from '../support/chromium.ts';
import type { PageSite } from '../support/chromium.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import type { CuttingProxyOptions } from '../support/cutting-proxy.ts';
import { modelAt, sharedNamespace, sharedPort } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

const LONG = 300_000;

const SEAL = `kind: Tool
version: "1.0"
name: seal
summary: Seals.
implementation: {type: builtin, entrypoint: echo}
parameters: {text: string}
approval: always
`;
const agentOf = (name: string, more: string): string =>
  `kind: Agent\nversion: "1.0"\nname: ${name}\nsummary: Seals.\npersona: {agent: You seal.}\nclient_tools: allow\n${more}`;
const filesWith = (model: string): Record<string, string> => ({
  'tools/seal.yaml': SEAL,
  'agents/deputy.yaml': agentOf('deputy', `import: {tools: [seal]}\n${model}`),
  'agents/sealer.yaml': agentOf('sealer', `import: {tools: [seal, echo], agents: [deputy]}\n${model}`),
});

const action = (id: string, name: string, parameters: object = {}, type = 'tool'): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify({ name, parameters })}</action>`;
const words = (count: number, word: string): string =>
  Array.from({ length: count }, (_, n) => `${word} ${n} 🎈`).join(' ');

const ALL_AT_ONCE = `${action('l', 'locate', { exact: true })}${action('s', 'seal', { text: 'red' })}${action('p', 'photo')}
${action('d', 'deputy', { message: 'seal it' }, 'agent')}<response final="true">$l.city, $s.text, $d</response>`;

/** Texts by what the user says, in order: the first one whose words are in the request counts. */
const TEXTS: readonly (readonly [said: string, text: string])[] = [
  [
    'do it all',
    `<thought>${words(25, 'hm')}</thought>${action('l', 'locate', { exact: true })}bare ${words(10, 'word')}
${action('s', 'seal', { text: 'red' })}${action('p', 'photo')}${action('d', 'deputy', { message: 'seal it' }, 'agent')}
<response final="true">${words(20, 'so')} $l.city, $s.text, $d ${words(20, 'end')}</response>`,
  ],
  ['all at once', ALL_AT_ONCE],
  ['seal it', `${action('s', 'seal', { text: 'green' })}<response final="true">$s.text</response>`],
];
const STORY = `<thought>${words(10, 'hm')}</thought><response final="true">${words(120, 'word')}</response>`;
const ANSWER = `${words(20, 'so')} Łódź, red, green ${words(20, 'end')}`;

/** A few characters every 20 milliseconds, so that a message takes some seconds. */
function slowly(text: string): StreamStep[] {
  const pieces = text.match(/[^]{1,6}/gu) ?? [];
  return [...pieces.flatMap((piece): StreamStep[] => [piece, { pauseMs: 20 }]), { finish: 'stop' }];
}

let llm: ScriptedLlm;
let site: PageSite;
type Target = Omit<Namespace, 'name'>;
let system: Target;

beforeAll(async () => {
  let stories = 0;
  llm = await startScriptedLlm(
    ({ body }) => {
      const request = JSON.stringify(body['messages']);
      // The first one never ends.
      if (request.includes('a long story')) {
        stories += 1;
        return stories === 1 ? { stream: [...slowly(STORY).slice(0, 150), 'STALL'] } : answer(STORY, 40);
      }
      return { stream: slowly(TEXTS.find(([said]) => request.includes(said))?.[1] ?? '') };
    },
    await sharedPort(),
  );
  site = await startPageSite(await bundleForPage('test/client/scenario.ts', 'app'), { port: await sharedPort() });
  system = await sharedNamespace();
  await upload(system, modelAt(llm.baseUrl));
}, LONG);

afterAll(async () => {
  await Promise.all([llm?.[Symbol.asyncDispose](), site?.[Symbol.asyncDispose]()]);
});

async function upload({ url, authorization: headers }: Target, model: string): Promise<void> {
  const body = JSON.stringify({ files: filesWith(model) });
  const uploaded = await fetch(`${url}/manifests`, { method: 'PUT', headers, body });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
}

async function userToken({ url, authorization: headers }: Target): Promise<string> {
  const body = { user_id: 'zoë', scopes: ['read', 'message', 'approve', 'tools', 'files'], expires_in: 3_600 };
  const issued = await fetch(`${url}/tokens`, { method: 'POST', headers, body: JSON.stringify(body) });
  return ((await issued.json()) as { token: string }).token;
}

/** A client without a proxy. */
const direct = ({ url, key }: Target): Client => new Client({ url, key });

const folded = (events: readonly SessionEvent[], run: Run): Message => events.reduce(fold, emptyMessage(run.id));

/** What the system has stored of a run, as a replay gives it. */
async function stored(of: Target, session: string, id: string): Promise<{ events: SessionEvent[]; message: Message }> {
  const run = direct(of).session(session).run(id);
  const events: SessionEvent[] = [];
  for await (const event of run.events()) if (event.seq !== null) events.push(event);
  const message = folded(events, run);
  const document = await run.document();
  expect([message.status, message.response]).toEqual([document.status, document.response]);
  return { events, message };
}

/** Output that was printed while nobody was connected is not shown again. */
const withoutLive = ({ actions, ...message }: Message): object => ({
  ...message,
  actions: actions.map(({ progress: _progress, child_session_id: _child, ...shown }) => shown),
});

/** Checks what the program has seen against what the system has stored. */
async function expectStored(report: ScenarioReport, of = system): Promise<Message> {
  const { events, message } = await stored(of, report.session, report.run);
  expect(report.journaled).toEqual(events.map(({ seq, type }) => [seq, type]));
  expect(withoutLive(report.message)).toEqual(withoutLive(message));
  expect(report.message).toMatchObject({ status: 'completed', approvals: [], calls: [] });
  expect(report.history.messages.at(-1)).toMatchObject({ content: message.response, run_id: report.run });
  expect(report.content).toBe(NOTE);
  return message;
}

/** The same for a run whose process has survived. */
async function expectAll(report: ScenarioReport): Promise<void> {
  const message = await expectStored(report);
  expect(report.message.response).toBe(ANSWER);
  expect(report.patched).toEqual(message.blocks.map(({ segment, text }) => [segment, text, false]));
  expect(report.visible).toContain(`bare ${words(10, 'word')}`);
  expect(report.calls).toEqual([{ exact: true }, {}]);
  expect(report.asked.toSorted()).toEqual(['deputy: seal', 'sealer: seal']);
  expect(report.history).toMatchObject({
    messages: [
      { role: 'user', content: expect.stringContaining('do it all') as string },
      { role: 'assistant', content: ANSWER, status: 'completed', run_id: report.run },
    ],
    next: null,
  });
  expect(report.artifacts).toEqual([{ size: expect.any(Number) as number, type: 'application/json', start: '{"pix' }]);
  expect(report.artifacts[0]?.size).toBeGreaterThan(PHOTO_CHARS);
}

const PROGRAM: Omit<ScenarioOptions, 'url' | 'token'> = { agent: 'sealer', message: 'do it all' };

type Faults = Pick<CuttingProxyOptions, 'everyMs' | 'eventsOf' | 'isSilenced'>;
const EVERY_SECOND: Faults = { everyMs: 1_000 };
/** After a few events: every second connection falls silent, the others are cut. */
const SILENT: Faults = { eventsOf: ({ number }) => 3 + (number % 7), isSilenced: ({ number }) => number % 2 === 0 };

/** The whole program, over a bad connection. */
async function over(faults: Faults, run: (options: ScenarioOptions) => Promise<ScenarioReport>): Promise<void> {
  const posted = new Set<string>();
  const isFirst = (path: string): boolean => !posted.has(path) && posted.add(path).size > 0;
  await using proxy = await startCuttingProxy({
    target: system.url,
    ...faults,
    // Every POST arrives, and its first answer is lost: the client sends it again.
    loses: ({ method, path }) => method === 'POST' && isFirst(path),
  });
  const silenceMs = faults.isSilenced === undefined ? 15_000 : 2_000;
  await expectAll(await run({ ...PROGRAM, url: proxy.url, token: await userToken(system), silenceMs }));
  expect(proxy.cuts()).toBeGreaterThan(1);
}

test(
  '[K3] in Node, every journaled event comes once, and the folded message is the stored answer, over a connection that falls silent or is cut',
  async () => over(SILENT, scenario),
  LONG,
);

describe.skipIf(noChromium !== null)(
  `[K3] on a page of another origin${noChromium === null ? '' : ` (${noChromium})`}`,
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await openChromium();
    });
    afterAll(async () => {
      await browser?.close();
    });

    const onPage = async (options: ScenarioOptions): Promise<ScenarioReport> => {
      const { page, faults } = await openPage(browser, site);
      const report = await page.evaluate<ScenarioReport>(`app.scenario(${JSON.stringify(options)})`);
      expect(faults).toEqual([]);
      await page.close();
      return report;
    };

    test(
      'a user token suffices, over a connection that is cut every second',
      async () => over(EVERY_SECOND, onPage),
      LONG,
    );
  },
);

describe('[K3] while the system is killed and started again', () => {
  const own: Target = { url: '', key: 'of-a-system-that-is-killed', authorization: { authorization: '' } };
  let killed: System;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cortex-client-'));
    killed = await startSystem({
      port: await freePort(),
      runnerPort: 0,
      stateDir: folder,
      vars: { LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'm', API_KEYS: `app:admin:${own.key}` },
      ownRunner: false,
      progress: () => undefined,
    });
    Object.assign(own, { url: killed.url, authorization: { authorization: `Bearer ${own.key}` } });
    await upload(own, '');
  }, LONG);
  afterAll(async () => {
    await killed?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Kills the Worker with all its processes, and starts it again. */
  async function restart(): Promise<void> {
    for (const part of killed.parts) {
      await part.stop(0);
      await part.start();
    }
  }

  test(
    'when the first result arrives: results and decisions of a run survive, and another run goes on',
    async () => {
      let restarted: Promise<void> | null = null;
      await using proxy = await startCuttingProxy({
        target: own.url,
        everyMs: 1_000,
        loses: ({ path }) => {
          if (restarted !== null || !path.includes('/calls/')) return false;
          restarted = restart();
          return true;
        },
      });
      const token = await userToken(own);
      const began = Promise.withResolvers<void>();
      const told = story(new Client({ url: proxy.url, token }), began.resolve);
      await Promise.race([began.promise, told]);
      const report = await scenario({ ...PROGRAM, message: 'all at once', url: proxy.url, token });
      await told;
      await (restarted ?? Promise.reject(new Error('nothing was killed')));
      await expectStored(report, own);
      expect(report.message.response).toBe('Łódź, red, green');
      expect(report.asked).toEqual(expect.arrayContaining(['deputy: seal', 'sealer: seal']));
    },
    LONG,
  );

  /** A long answer, in whose middle the system is killed. @param began called when a part of it has arrived */
  async function story(client: Client, began: () => void): Promise<void> {
    const session = await client.createSession('sealer');
    const run = await session.send('tell me a long story');
    const seen: SessionEvent[] = [];
    for await (const event of run.events()) {
      seen.push(event);
      if (event.type === 'response' && event.data.offset > 200) began();
    }
    const { events, message } = await stored(own, session.id, run.id);
    expect(seen.filter(({ seq }) => seq !== null).map(({ seq, type }) => [seq, type])).toEqual(
      events.map(({ seq, type }) => [seq, type]),
    );
    expect(withoutLive(folded(seen, run))).toEqual(withoutLive(message));
    expect(message.response).toBe(words(120, 'word'));
    expect(message.blocks.some(({ is_cut: isCut }) => isCut)).toBe(true);
    expect((await session.history()).messages.at(-1)?.content).toBe(message.response);
  }
});
