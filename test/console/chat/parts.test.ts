import { describe, expect, test } from 'vitest';
import type { Action, Block, HistoryMessage } from '../../../src/client/index.ts';
import { attached, base64, contentOf, imageType } from '../../../console/chat/attachments.ts';
import type { Attachment } from '../../../console/chat/attachments.ts';
import { entriesOf, partsOf } from '../../../console/chat/entries.ts';
import { declaredTools, outputOf } from '../../../console/chat/tool-declarations.ts';
import { completed } from '../../../console/chat/unfinished.ts';
import * as limits from '../../../console/parts/limits.ts';
import { decodeEntities, isMisleading, linkUrl, showInvisible } from '../../../console/parts/safe-text.ts';

describe('entries', () => {
  const user = (id: string): HistoryMessage => ({ role: 'user', content: 'q', run_id: id });
  const answer = (id: string): HistoryMessage => ({ role: 'assistant', content: 'a', run_id: id, status: 'completed' });
  const seeded: HistoryMessage[] = [
    { role: 'user', content: 'old', seeded: true },
    { role: 'assistant', content: 'older', seeded: true },
  ];
  const keys = (messages: readonly HistoryMessage[]): string[] => entriesOf(messages).map(({ key }) => key);

  test('[U2] each run has one answer, also before the history has it', () => {
    expect(keys([user('r1'), answer('r1'), user('r2')])).toEqual(['r1 user', 'r1 answer', 'r2 user', 'r2 answer']);
  });

  test('[C4] the answer of a message can be tried again, that of a program or an action cannot', () => {
    const again: HistoryMessage = { ...user('r2'), parent_run: 'r1', retry_of: 'r1' };
    const first: HistoryMessage = { ...user('r1'), parent_run: null };
    const entries = entriesOf([first, answer('r1'), again, answer('r2'), answer('r3')]);
    expect(entries.flatMap((entry) => (entry.type === 'answer' ? [entry.canRetry] : []))).toEqual([true, false, false]);
  });

  test('[U2] the key of a message stays when earlier or later ones are added', () => {
    const before = keys([...seeded.slice(1), user('r1')]);
    const after = keys([...seeded, user('r1'), answer('r1')]);
    expect(after).toEqual(expect.arrayContaining(before));
    expect(new Set(after).size).toBe(after.length);
  });
});

test('[C4] all versions of a message have the same key', () => {
  const version = (id: string): HistoryMessage => ({ role: 'user', content: id, run_id: id, branches: ['r1', 'r2'] });
  expect(entriesOf([version('r2')])[0]?.key).toBe(entriesOf([version('r1')])[0]?.key);
});

test('[C5] a message that was sent into a run has no answer of its own', () => {
  const sent = (more: object): HistoryMessage => ({ role: 'user', content: 'q', run_id: 'r1', timestamp: 5, ...more });
  const keys = entriesOf([sent({ timestamp: 1 }), sent({ steered: true })]).map(({ key }) => key);
  expect(keys).toEqual(['r1 user', 'r1 answer', 'r1 steered 5']);
});

describe('parts of a run', () => {
  const block = (segment: number, type: Block['type'], more: Partial<Block> = {}): Block => ({
    type,
    segment,
    iteration: 1,
    text: 'x',
    is_open: false,
    is_cut: false,
    is_replaced: false,
    started_at: 0,
    written_at: 0,
    ...more,
  });
  const action = (id: string, iteration = 1): Action => ({
    id,
    iteration,
    name: null,
    type: 'python',
    mode: 'sync',
    status: 'completed',
    parameters: null,
    depends_on: [],
    output: null,
    error: null,
    attempts: 1,
    progress: '',
    written: null,
    is_in_thought: false,
    is_repaired: false,
    is_cached: false,
    skipped: null,
    tries: [],
    waits: [],
    child_session_id: null,
    queued_at: 0,
    ended_at: 0,
    seqs: { written: 1, executed: 1, ended: 2 },
  });
  const keys = (blocks: readonly Block[], actions: readonly Action[]): string[] =>
    partsOf({ blocks, actions }).parts.map(({ key }) => key);

  test('[U2] actions follow the thoughts that led to them, in each iteration', () => {
    const blocks = [block(1, 'thought'), block(5, 'response'), block(9, 'thought', { iteration: 2 })];
    expect(keys(blocks, [action('a'), action('b', 2)])).toEqual([
      'block 1',
      'actions 1',
      'block 5',
      'block 9',
      'actions 2',
    ]);
  });

  test('[C5] a message that was sent into a run comes before what the model wrote after it', () => {
    const message: HistoryMessage = { role: 'user', content: 'hurry', steered: true };
    const blocks = [block(1, 'thought'), block(9, 'response', { iteration: 2 })];
    const { parts } = partsOf({ blocks, actions: [action('a')] }, [{ iteration: 1, message }]);
    expect(parts.map(({ key }) => key)).toEqual(['block 1', 'actions 1', 'sent 1 0', 'block 9']);
  });

  test('[U2] replaced and blank blocks are hidden; one that is just opened is not', () => {
    const blocks = [
      block(1, 'response', { is_replaced: true }),
      block(2, 'text', { text: ' \n' }),
      block(3, 'thought', { text: '', is_open: true }),
    ];
    expect(keys(blocks, [])).toEqual(['block 3']);
  });

  test('[U2] only so many actions and blocks are in the conversation', () => {
    const actions = Array.from({ length: limits.actionsInMessage + 5 }, (_, index) => action(`a${index}`));
    const blocks = Array.from({ length: limits.blocksInMessage + 3 }, (_, index) => block(index, 'text'));
    const { parts, hiddenActions, hiddenBlocks } = partsOf({ blocks, actions });
    expect({ hiddenActions, hiddenBlocks }).toEqual({ hiddenActions: 5, hiddenBlocks: 3 });
    expect(parts).toHaveLength(limits.blocksInMessage + 1);
  });
});

describe('attachments', () => {
  const file = (name: string, size: number, type = ''): File => new File([new Uint8Array(size)], name, { type });

  test.each([
    ['an empty file', [file('a.txt', 0)], '"a.txt" is empty.'],
    ['a file that is too large', [file('a.bin', limits.fileBytes + 1)], '"a.bin" has 8.4 MB; a file may have 8.4 MB.'],
    [
      'files that are too large together',
      [file('a', limits.fileBytes), file('b', limits.fileBytes), file('c', 1)],
      '"c" does not fit: the files of a message may have 16.8 MB together.',
    ],
    [
      'too many files',
      Array.from({ length: limits.files + 2 }, () => file('a', 1)),
      '2 not attached: a message may have 16 files.',
    ],
    ['a name that hides its end', [file('a\u202Etxt.exe', 0)], '"a[U+202E]txt.exe" is empty.'],
  ])('[C2] %s: the others are attached', (_, files, issue) => {
    const one: Attachment = { id: -1, file: file('first', 0) };
    expect(attached([], files).issues).toEqual([issue]);
    expect(attached([one], []).files).toEqual([one]);
  });

  test('[C2] the bytes decide about images, not the name', async () => {
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1]);
    const files = [
      new File([png], 'a.jpg', { type: 'image/jpeg' }),
      new File(['text'], 'b.png', { type: 'image/png' }),
      new File(['a,b'], 'c.csv', { type: 'text/csv' }),
      new File(['<svg/>'], 'd\u202E.svg', { type: 'image/svg+xml' }),
    ];
    const content = await contentOf(
      'Look',
      files.map((each) => ({ file: each })),
    );
    expect(content).toEqual([
      { type: 'text', text: 'Look' },
      { type: 'image', name: 'a.jpg', media_type: 'image/png', data: base64(png) },
      { type: 'file', name: 'b.png', data: btoa('text') },
      { type: 'file', name: 'c.csv', media_type: 'text/csv', data: btoa('a,b') },
      { type: 'file', name: 'd_.svg', media_type: 'image/svg+xml', data: btoa('<svg/>') },
    ]);
  });

  test('[C2] text alone stays text, and files need none', async () => {
    expect(await contentOf('Hi', [])).toBe('Hi');
    expect(await contentOf(' ', [{ file: new File(['a'], 'a') }])).toEqual([{ type: 'file', name: 'a', data: 'YQ==' }]);
  });

  test('[C2] base64 of a large file is that of its bytes', () => {
    const data = Uint8Array.from({ length: 100_001 }, (_, index) => (index * 7) % 256);
    expect(Uint8Array.from(atob(base64(data)), (char) => char.charCodeAt(0))).toEqual(data);
  });

  test.each([
    ['\u00ff\u00d8\u00ff\u00e0', 'image/jpeg'],
    ['RIFF\u0001\u0002\u0003\u0004WEBPVP8 ', 'image/webp'],
    ['RIFF\u0001\u0002\u0003\u0004WAVE', null],
    ['', null],
  ])('[C2] %j is %s', (start, type) => {
    expect(imageType(Uint8Array.from(start, (char) => char.charCodeAt(0)))).toBe(type);
  });
});

describe('client tools', () => {
  test.each([
    ['{', 'This is not JSON'],
    ['{}', 'The tools must be a list'],
  ])('[C3] %s is refused before it is sent', (text, issue) => {
    expect(declaredTools(text)).toEqual({ tools: [], issue: expect.stringContaining(issue) as string });
  });

  test('[C3] declarations are sent as they are written', () => {
    const tools = [{ name: 'a', description: 'b', parameters: { type: 'object' } }];
    expect(declaredTools(JSON.stringify(tools))).toEqual({ tools });
    expect(declaredTools(' \n')).toEqual({ tools: [] });
  });

  test.each([
    ['', null],
    [' {"a": [1]} ', { a: [1] }],
    ['Bern', 'Bern'],
    ['{"a"', '{"a"'],
    // JSON.parse would round them.
    ['{"id": 12345678901234567890}', '{"id": 12345678901234567890}'],
    ['{"id": 9007199254740991, "x": 1.5e-9}', { id: 9007199254740991, x: 1.5e-9 }],
  ])('[C3] the result %j is %j', (text, output) => {
    expect(outputOf(text)).toEqual({ output });
  });
});

describe('unfinished Markdown', () => {
  test.each([
    ['a **b', 'a **b**'],
    ['a **', 'a '],
    ['a `', 'a '],
    ['see [the page](https://exa', 'see the page'],
    ['see ![a chart](htt', 'see '],
    ['a\n-', 'a\n'],
    ['a\n``', 'a\n'],
    ['|a|b|\n|--', '|a|b|\n'],
    ['```py', '```py\n'],
    ['```py\n# **a', '```py\n# **a\n'],
    ['```\na\n```\n**b', '```\na\n```\n**b**'],
    ['````\n```\na', '````\n```\na\n'],
    ['done **a** `b`', 'done **a** `b`'],
    ['', ''],
  ])('[U2] %j is read as %j', (text, expected) => {
    expect(completed(text)).toBe(expected);
  });

  test('[U2] long lines of spaces and marks take linear time', () => {
    for (const mark of [' ', '*', '~', '> ', '`']) {
      const line = `${mark.repeat(100_000)}x`;
      expect(completed(line).startsWith(line.slice(0, 90_000))).toBe(true);
    }
  });
});

describe('text of others', () => {
  test.each([
    ['https://example.com/a', true],
    ['mailto:a@b.c', true],
    ['java\tscript:alert(1)', false],
    [' \u0001javascript:alert(1)', false],
    ['//example.com', false],
    ['/a', false],
    ['', false],
    [`https://example.com/${'a'.repeat(limits.urlChars)}`, false],
  ])('[U2] %j may be a link: %s', (href, expected) => {
    expect(linkUrl(href) !== null).toBe(expected);
  });

  test.each([
    ['paypal.com', 'https://evil.example', true],
    ['www.paypal.com', 'https://paypal.com/x', false],
    ['bücher.example', 'https://xn--bcher-kva.example/', false],
    ['a@b.example', 'mailto:a@b.example', false],
  ])('[U2] %j on a link to %s misleads: %s', (text, href, expected) => {
    expect(isMisleading(text, new URL(href))).toBe(expected);
  });

  test('[U2] invisible characters are shown, line breaks and tabs stay', () => {
    expect(showInvisible('a\u200bb\u{e0041}\u00ad\r\n\tc')).toBe('a[U+200B]b[U+E0041][U+00AD][U+000D]\n\tc');
  });

  test.each([
    ['&lt;b&gt; &amp;amp; &#65;&#x42; &nbsp;', '<b> &amp; AB \u00a0'],
    ['&constructor; &#0; &#xD800; &#9999999;', '&constructor; \ufffd \ufffd \ufffd'],
  ])('[U2] %j is %j', (text, expected) => {
    expect(decodeEntities(text)).toBe(expected);
  });
});
