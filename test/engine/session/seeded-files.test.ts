/** A seeded history with images and files: stored with the session, shown to the model, read and exported (C1, C2). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { FilePart } from '../../../src/domain/content.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { SeededMessage } from '../../../src/domain/seeded.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { checkedSession } from '../../support/response-check.ts';
import { say, sessionKit, textOf, variablesOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { SESSION_RECORD, withStatements } from '../../journal/journal-kit.ts';

const ANSWER = '<response final="true">ok</response>';

/** Files, and their bytes. */
class Files {
  readonly bytes = new Map<string, Uint8Array>();

  part(name: string, mediaType: string, text: string): FilePart {
    const sha256 = createHash('sha256').update(text).digest('hex');
    const type = mediaType.startsWith('image/') ? 'image' : 'file';
    this.bytes.set(sha256, new TextEncoder().encode(text));
    return { type, name, media_type: mediaType, size: text.length, sha256 };
  }
}

function talk(files: Files): SeededMessage[] {
  return [
    {
      role: 'user',
      content: [{ type: 'text', text: 'Which is larger?' }, files.part('a.png', 'image/png', 'bytes of a')],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'p', type: 'function', function: { name: 'plot', arguments: '{}' } }],
    },
    {
      role: 'tool',
      tool_call_id: 'p',
      content: [{ type: 'text', text: 'plotted' }, files.part('plot.png', 'image/png', 'bytes of the plot')],
    },
    { role: 'assistant', content: 'The first.' },
    { role: 'user', content: [files.part('b.csv', 'text/csv', 'x,y')] },
    { role: 'assistant', content: 'A table.' },
  ];
}

async function begun(options: Parameters<typeof sessionKit>[0] = {}): Promise<{ kit: SessionKit; files: Files }> {
  const files = new Files();
  const history = talk(files);
  const kit = await sessionKit({ history, historyFiles: files.bytes, script: [ANSWER, ANSWER, ANSWER], ...options });
  return { kit, files };
}

const shown = (kit: SessionKit, call = 0): string =>
  (kit.requests[call]?.messages ?? [])
    .slice(1)
    .map(({ role, content }) => `${role}: ${content}`)
    .join('\n');

async function attached(kit: SessionKit, call = 0): Promise<string[]> {
  const all = (kit.requests[call]?.messages ?? []).flatMap(({ attachments = [] }) => attachments);
  return await Promise.all(all.map(async ({ name, read }) => `${name}: ${new TextDecoder().decode(await read())}`));
}

test('[C1] [C2] the model gets the images of the history at their places, and text files as text', async () => {
  const { kit } = await begun();
  await say(kit, 'And now?');
  expect(shown(kit)).toContain('user: Which is larger?\n[image "a.png", image/png, 10 bytes]\nassistant: <action');
  expect(shown(kit)).toContain(
    'status="completed">\n[image "plot.png", image/png, 17 bytes]\nplotted\n</action_result>',
  );
  expect(shown(kit)).toContain('[file "b.csv", text/csv, 3 bytes]');
  expect(shown(kit)).toContain('<attached_file name="b.csv" type="text/csv">\nx,y\n</attached_file>');
  expect(await attached(kit)).toEqual(['a.png: bytes of a', 'plot.png: bytes of the plot']);
});

test('[C1] [C2] GET /history has their parts, and a line for each', async () => {
  const { kit, files } = await begun();
  const destroy = async (): Promise<void> => undefined;
  const fetch = checkedSession({ session: kit.session, clock: new VirtualClock(), destroy, log: () => undefined });
  const { messages } = (await (await fetch(new Request('http://session/history'))).json()) as { messages: unknown[] };
  const [user, , result, answer, file] = talk(files);
  expect(messages[0]).toEqual({
    role: 'user',
    content: 'Which is larger?\n[image "a.png", image/png, 10 bytes]',
    parts: user?.content,
    seeded: true,
  });
  expect(messages[2]).toMatchObject({
    content: 'plotted\n[image "plot.png", image/png, 17 bytes]',
    parts: result?.content,
  });
  expect(messages[3]).toEqual({ ...answer, seeded: true });
  expect(messages[4]).toMatchObject({ content: '[file "b.csv", text/csv, 3 bytes]', parts: file?.content });
});

test('[C1] [C2] the export has them after the record, and the transcript', async () => {
  const { kit, files } = await begun();
  await say(kit, 'go');
  const lines = (await textOf(kit.session.export())).trim().split('\n');
  const seeded = lines.map((line) => (JSON.parse(line) as { seeded?: unknown }).seeded);
  expect(seeded.slice(1, 7)).toEqual(talk(files));
  expect(seeded.filter((one) => one !== undefined)).toHaveLength(6);
  expect(await textOf(kit.session.transcript())).toContain('[image \\"a.png\\", image/png, 10 bytes]');
});

test('[C1] of a long result with files, the beginning of the text and the files are read', async () => {
  const files = new Files();
  const [, call] = talk(files);
  if (call === undefined) throw new Error('no call');
  const content = [
    { type: 'text', text: 'y'.repeat(limits.historyResultChars + 5) } as const,
    { type: 'text', text: 'the end' } as const,
    files.part('plot.png', 'image/png', 'bytes of the plot'),
  ];
  const history: SeededMessage[] = [
    { role: 'user', content: 'go' },
    call,
    { role: 'tool', tool_call_id: 'p', content },
  ];
  const kit = await sessionKit({ history, historyFiles: files.bytes, script: [ANSWER] });
  await say(kit, 'now');
  expect(shown(kit)).toContain('[image "plot.png", image/png, 17 bytes]');
  expect(shown(kit)).not.toContain('the end');
  expect(await attached(kit)).toEqual(['plot.png: bytes of the plot']);
});

describe('[C1] [C2] a session whose creation fails', () => {
  test.each([
    'INSERT INTO session',
    'INSERT INTO variables',
    'INSERT INTO seeded',
    'CREATE TABLE IF NOT EXISTS seeded',
    'INSERT INTO blobs',
  ])('at %s leaves no session and no bytes, and can be created again', async (statement) => {
    const sql = openNodeSql();
    let isBroken = true;
    const failing = withStatements(sql, (text) => {
      if (isBroken && text.includes(statement)) throw new Error('disk failure');
    });
    const kit = await sessionKit({ sql: { ...sql, ...failing }, variables: null, script: [ANSWER] });
    const files = new Files();
    const history = { messages: talk(files), files: files.bytes };
    const create = (): Promise<void> => kit.session.create(SESSION_RECORD, { x: 1 }, history);
    const stored = (): unknown => {
      const tables = sql.exec(`SELECT name FROM sqlite_master WHERE name = 'blobs'`);
      return tables.length === 0 ? 0 : sql.exec(`SELECT COUNT(*) AS n FROM blobs`)[0]?.['n'];
    };
    await expect(create()).rejects.toThrow('disk failure');
    expect([kit.session.exists, stored()]).toEqual([false, 0]);
    isBroken = false;
    await create();
    expect([kit.session.seededCount, await variablesOf(kit.session), stored()]).toEqual([6, { x: 1 }, 3]);
    const next = await sessionKit({ sql });
    expect([next.session.seededCount, await variablesOf(next.session)]).toEqual([6, { x: 1 }]);
  });

  test('because of its variables has stored nothing', async () => {
    const sql = openNodeSql();
    const kit = await sessionKit({ sql, variables: null });
    const files = new Files();
    const variables = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`v${at}`, 'x'.repeat(200_000)]));
    const create = kit.session.create(SESSION_RECORD, variables, { messages: talk(files), files: files.bytes });
    await expect(create).rejects.toMatchObject({ code: 'variables_quota' });
    expect(sql.exec(`SELECT name FROM sqlite_master WHERE type = 'table'`)).toEqual([]);
  });
});
