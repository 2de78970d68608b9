import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { lacks } from '../../support/programs.ts';

const script = 'manifests/tools/text_stats/text_stats.py';
const folder = mkdtempSync(join(tmpdir(), 'text-stats-'));
afterAll(() => rmSync(folder, { recursive: true }));

type Way = 'argument' | 'stdin' | 'file';

/** Runs the tool as the runner does; R3 provides the input in three ways. */
function run(parameters: unknown, way: Way = 'argument'): Record<string, unknown> {
  const input = typeof parameters === 'string' ? parameters : JSON.stringify(parameters);
  const path = join(folder, 'inputs.json');
  writeFileSync(path, input);
  const { stdout, stderr, status } = spawnSync('python3', way === 'argument' ? [script, input] : [script], {
    input: way === 'stdin' ? input : '',
    env: { PATH: process.env['PATH'], ...(way === 'file' ? { CORTEX_INPUTS: path } : {}) },
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** In one process, because each start of Python takes longer than the tool. */
const EACH = `import runpy, sys, json
for given in json.load(sys.stdin):
    sys.argv = ["", json.dumps(given)]
    runpy.run_path("${script}")`;

function runAll(parameters: readonly unknown[]): unknown[] {
  const input = JSON.stringify(parameters);
  const { stdout, stderr, status } = spawnSync('python3', ['-c', EACH], { input, encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

const missing = lacks('python3');

describe.skipIf(missing)('text_stats (skipped only without python3)', () => {
  const fox = 'The quick brown fox jumps over the lazy dog. The dog sleeps!';

  test.each<Way>(['argument', 'stdin', 'file'])('[R3] it reads its input as %s', (way) => {
    expect(run({ text: fox, top: 2 }, way)).toMatchObject({
      words: 12,
      unique_words: 9,
      sentences: 2,
      paragraphs: 1,
      characters: 60,
      reading_time_seconds: 3,
      top_words: [
        { word: 'dog', count: 2 },
        { word: 'brown', count: 1 },
      ],
    });
  });

  test('[M3] it knows the sentences and words of many languages', () => {
    const cases: readonly [text: string, sentences: number, words: number][] = [
      ['Dr. Smith paid 3.14 dollars, e.g. today. J. Doe did not.', 2, 12],
      ['Wait... what?! "Yes." He left.', 3, 5],
      ['One\n\nTwo\n\nThree', 3, 3],
      ["don't re-enter the well-known café", 1, 5],
      ['Привет мир. Как дела?', 2, 4],
      ['你好，世界。我是学生。', 2, 8],
      ['これはペンです。', 1, 7],
      ['नमस्ते दुनिया। आप कैसे हैं?', 2, 5],
      ['مرحبا بالعالم. كيف حالك؟', 2, 4],
      ['สวัสดี ชาวโลก', 1, 2],
      ['😀😀 !!! ...', 0, 0],
      ['', 0, 0],
    ];
    expect(runAll(cases.map(([text]) => ({ text })))).toMatchObject(
      cases.map(([, sentences, words]) => ({ sentences, words })),
    );
  });

  test('[M3] readability uses the published formulas, for Latin text only', () => {
    const { readability } = run({ text: 'The cat sat on the mat.' }) as { readability: Record<string, number> };
    // 6 words, 1 sentence, 6 syllables: 206.835 - 1.015*6 - 84.6
    expect(readability).toEqual({ flesch_reading_ease: 116.1, flesch_kincaid_grade: -1.4, lix: 6 });
    expect(run({ text: '你好，世界。' })['readability']).toEqual({
      flesch_reading_ease: null,
      flesch_kincaid_grade: null,
      lix: null,
    });
    expect(run({ text: 'Привет мир.' })['readability']).toMatchObject({ flesch_reading_ease: null, lix: 2 });
  });

  test('[M3] ignored words and the reading speed are configurable', () => {
    const stats = run({ text: fox, ignore: ['DOG'], top: 1, words_per_minute: 60 });
    expect(stats).toMatchObject({ reading_time_seconds: 12, top_words: [{ word: 'brown', count: 1 }] });
  });

  test.each(['{', '{"text": 5}'])('[R3] the input %s gives a failure with the reason', (input) => {
    expect(run(input)).toMatchObject({ success: false, error: expect.stringMatching(/not JSON|must be a string/) });
  });

  test('[P16] a megabyte without a space is processed in linear time', () => {
    const text = 'a.'.repeat(500_000);
    expect(run({ text }, 'file')).toMatchObject({ characters: 1_000_000 });
  });
});
