import { describe, expect, test } from 'vitest';
import type { EventOf, SessionEvent } from '../../src/domain/event.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { artifactsOf } from '../../src/journal/artifacts.ts';
import { eventOfArtifact } from '../../src/journal/run-id.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { runText, sessionKit } from '../support/session-kit.ts';
import { checkedSession } from '../support/response-check.ts';

function completed(output: Json): EventOf<'action_completed'> {
  return {
    seq: 7,
    type: 'action_completed',
    session_id: 's',
    run_id: 'run_1',
    iteration: 1,
    timestamp: 5,
    action_id: 'a',
    action_name: 'echo',
    data: { output, ms: 0, attempt: 1 },
  };
}

const text = new TextDecoder();

describe('[J6] outputs that become artifacts', () => {
  test('a large text becomes a text artifact, a large object a JSON artifact; nothing else does', () => {
    const long = 'é'.repeat(limits.artifactBytes / 2);
    expect(artifactsOf(completed(long))).toEqual([]);
    const [asText] = artifactsOf(completed(`${long}!`));
    expect(asText?.entry).toMatchObject({
      id: 'art_7',
      name: 'a.txt',
      content_type: 'text/plain; charset=utf-8',
      size_bytes: limits.artifactBytes + 1,
    });
    expect(text.decode(asText?.read())).toBe(`${long}!`);
    const [asJson] = artifactsOf(completed({ long }));
    expect(asJson?.entry).toMatchObject({ id: 'art_7', name: 'a.json', content_type: 'application/json' });
    expect(JSON.parse(text.decode(asJson?.read()))).toEqual({ long });
    expect(artifactsOf({ ...completed(`${long}!`), type: 'action_failed' } as unknown as SessionEvent)).toEqual([]);
  });

  test('files of any size become artifacts, in both notations', () => {
    const files = artifactsOf(
      completed({
        files: [
          { name: '../../etc/plot 1.png', content_type: 'image/png', base64: btoa('\u0089PNG') },
          { name: 'notes.md', text: '# é' },
          { name: 'broken', base64: 'a$b' },
          'no file',
        ],
        content: [
          { type: 'text', text: 'the answer' },
          { type: 'image', mimeType: 'image/jpeg', data: btoa('jpeg') },
        ],
      }),
    );
    expect(
      files.map(({ entry: { id, name, content_type: type, size_bytes: size } }) => [id, name, type, size]),
    ).toEqual([
      ['art_7_1', 'plot_1.png', 'image/png', 4],
      ['art_7_2', 'notes.md', 'text/plain; charset=utf-8', 4],
      ['art_7_3', 'file-6', 'image/jpeg', 4],
    ]);
  });

  test.each(['image/svg+xml', 'TEXT/HTML; charset=utf-8'])('a file with the type %s becomes plain text', (type) => {
    const [file] = artifactsOf(completed({ files: [{ name: 'x', content_type: type, base64: btoa('<script>') }] }));
    expect(file?.entry.content_type).toBe('text/plain; charset=utf-8');
  });

  test.each(['a/b\r\nset-cookie: x', 'nonsense'])('the invalid type %j becomes application/octet-stream', (type) => {
    const [file] = artifactsOf(completed({ files: [{ name: 'x', content_type: type, base64: '' }] }));
    expect(file?.entry.content_type).toBe('application/octet-stream');
  });
});

describe('[J6] names of artifacts', () => {
  const ids: readonly (readonly [id: string, seq: number | null])[] = [
    ['art_7', 7],
    ['art_7_1', 7],
    ['art_123456789012345', 123_456_789_012_345],
    ['art_1234567890123456', null],
    ['art_7_1234', 7],
    ['art_7_12345', null],
    ['art_', null],
    ['xart_7', null],
  ];
  test.each(ids)('%s refers to event %j', (id, seq) => {
    expect(eventOfArtifact(id)).toBe(seq);
  });

  const names: readonly (readonly [said: string | undefined, name: string])[] = [
    ['report.pdf', 'report.pdf'],
    ['C:\\temp\\a b?.txt', 'a_b_.txt'],
    ['..', 'file-1'],
    ['.hidden', 'hidden'],
    [undefined, 'file-1'],
    ['é/ü', '_'],
    ['x'.repeat(limits.fileNameChars + 5), 'x'.repeat(limits.fileNameChars)],
    [`${'y'.repeat(limits.fileNameChars)}.csv`, `${'y'.repeat(limits.fileNameChars - 4)}.csv`],
  ];
  test.each(names)('a file named %j is stored as %s', (said, name) => {
    const [file] = artifactsOf(
      completed({ files: [{ ...(said === undefined ? {} : { name: said }), base64: 'YQ==' }] }),
    );
    expect(file?.entry.name).toBe(name);
  });

  test('an entry names the action and the run, and the time of creation', () => {
    const [file] = artifactsOf(completed({ files: [{ name: 'x', text: 'a' }] }));
    expect(file?.entry).toEqual({
      id: 'art_7_1',
      run_id: 'run_1',
      action_id: 'a',
      action_name: 'echo',
      created_at: 5,
      name: 'x',
      content_type: 'text/plain; charset=utf-8',
      size_bytes: 1,
    });
    const { action_name: _, ...unnamed } = completed({ files: [{ name: 'x', text: 'a' }] });
    expect(artifactsOf(unnamed as SessionEvent)[0]?.entry.action_name).toBeNull();
    const { action_id: __, ...without } = completed('x'.repeat(limits.artifactBytes + 1));
    expect(artifactsOf(without as SessionEvent)[0]?.entry.name).toBe('output.txt');
  });

  test.each(['🎈', 'é', 'x'])('the size limit of a text of %s counts bytes, not characters', (unit) => {
    const bytes = new TextEncoder().encode(unit).length;
    const fits = unit.repeat(Math.floor(limits.artifactBytes / bytes));
    expect(artifactsOf(completed(fits))).toEqual([]);
    expect(artifactsOf(completed(`${fits}${unit}`))).toHaveLength(1);
  });
});

describe('[J6] values that are files', () => {
  const one = (item: Json): unknown => {
    const [file] = artifactsOf(completed({ files: [item] }));
    return file === undefined
      ? null
      : [file.entry.name, file.entry.content_type, file.entry.size_bytes, text.decode(file.read())];
  };
  const cases: readonly (readonly [title: string, item: Json, file: unknown])[] = [
    ['base64', { name: 'x', base64: btoa('abc') }, ['x', 'application/octet-stream', 3, 'abc']],
    ['text', { name: 'x', text: 'é' }, ['x', 'text/plain; charset=utf-8', 2, 'é']],
    [
      'a null content_type and a mimeType',
      { name: 'x', content_type: null, mimeType: 'image/png', base64: '' },
      ['x', 'image/png', 0, ''],
    ],
    [
      'both types',
      { name: 'x', content_type: 'image/gif', mimeType: 'image/png', base64: '' },
      ['x', 'image/gif', 0, ''],
    ],
    [
      'a type other than text',
      { name: 'x', content_type: 7, mimeType: 'image/png', base64: '' },
      ['x', 'application/octet-stream', 0, ''],
    ],
    [
      'a type with a character set',
      { name: 'x', content_type: 'text/css; charset=latin-1', text: '' },
      ['x', 'text/css; charset=latin-1', 0, ''],
    ],
    ['a pdf', { name: 'x', content_type: 'application/pdf', base64: '' }, ['x', 'text/plain; charset=utf-8', 0, '']],
    ['text without a name', { text: 'the answer' }, null],
    ['data without a type', { name: 'x', data: btoa('a') }, null],
    ['data with a type', { mimeType: 'image/png', data: btoa('a') }, ['file-1', 'image/png', 1, 'a']],
    ['base64 before text', { name: 'x', text: 'no', base64: btoa('yes') }, ['x', 'application/octet-stream', 3, 'yes']],
    ['invalid base64', { name: 'x', base64: '?' }, null],
    ['a list', ['name'], null],
  ];
  test.each(cases)('%s', (_title, item, file) => {
    expect(one(item)).toEqual(file);
  });

  test('both lists together are limited to the maximum number per outcome, and every file is read', () => {
    const list = (count: number, from: number): Json[] =>
      Array.from({ length: count }, (_, n) => ({ name: `f${from + n}`, text: `${from + n}` }));
    const files = artifactsOf(completed({ content: list(60, 60), files: list(60, 0) }));
    expect(files).toHaveLength(limits.filesPerOutcome);
    expect(files.map(({ read }) => text.decode(read()))).toEqual(
      Array.from({ length: limits.filesPerOutcome }, (_, n) => `${n}`),
    );
    expect(files.at(-1)?.entry.id).toBe(`art_7_${limits.filesPerOutcome}`);
    expect(artifactsOf(completed({ files: 'x', content: { name: 'x' } }))).toEqual([]);
  });

  test('bytes stay unchanged', () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    const [file] = artifactsOf(completed({ files: [{ name: 'x', base64: btoa(String.fromCharCode(...bytes)) }] }));
    expect(file?.read()).toEqual(bytes);
  });
});

describe('[J6] artifacts in the session API', () => {
  const script = `<script>alert(1)</script>${'x'.repeat(limits.artifactBytes)}`;

  async function surface(): Promise<(path: string, headers?: Record<string, string>) => Promise<Response>> {
    const kit = await sessionKit({
      executors: { tool: async ({ parameters }) => ({ ok: true, output: parameters['n'] === 1 ? script : 'small' }) },
    });
    const actions = [1, 2, 1].map((n, at) => `<action name="echo" id="a${at}">{"n": ${n}}</action>`).join('');
    await runText(kit, `${actions}<response final="true">done</response>`);
    const destroy = async (): Promise<void> => undefined;
    const fetch = checkedSession({ session: kit.session, clock: new VirtualClock(), destroy, log: () => undefined });
    return async (path, headers = {}) => await fetch(new Request(`http://session${path}`, { headers }));
  }

  test('are listed, and served with headers that prevent a browser from running them', async () => {
    const get = await surface();
    const { artifacts, next } = (await (await get('/artifacts')).json()) as {
      artifacts: { id: string; action_id: string }[];
      next: number | null;
    };
    expect(artifacts.map(({ action_id: id }) => id)).toEqual(['a0', 'a2']);
    expect(next).toBeNull();
    const response = await get(`/artifacts/${artifacts[0]?.id}`);
    expect(await response.text()).toBe(script);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
      'content-disposition': 'attachment; filename="a0.txt"',
      'content-security-policy': "default-src 'none'; sandbox",
    });
  });

  test.each([
    ['bytes=8-12', 206, 'alert', `bytes 8-12/${script.length}`],
    ['bytes=1-2,4-5', 200, script, null],
    ['bytes=9999999-', 416, expect.any(String), `bytes */${script.length}`],
  ])('Range: %s gives %i', async (range, status, body, place) => {
    const get = await surface();
    const { artifacts } = (await (await get('/artifacts')).json()) as { artifacts: { id: string }[] };
    const response = await get(`/artifacts/${artifacts[0]?.id}`, { range });
    expect([response.status, response.headers.get('content-range')]).toEqual([status, place]);
    expect(await response.text()).toEqual(body);
  });

  test('are not found by another id', async () => {
    const get = await surface();
    for (const id of ['art_1', 'art_999', 'art_4_1', 'x', '..%2f']) {
      expect([id, (await get(`/artifacts/${id}`)).status]).toEqual([id, 404]);
    }
  });
});
