/** The YAML of a converted manifest: what did not change stays as it was written. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Draft } from '../../../cli/migration/draft.ts';
import type { Remark } from '../../../cli/migration/write-document.ts';
import { writeDocument } from '../../../cli/migration/write-document.ts';
import { readYaml } from '../../../src/catalog/read/yaml-file.ts';

/** Writes a text after a change of its draft. */
function written(source: string, change: (draft: Draft) => void, remarks: readonly Remark[] = []): string {
  const [document] = readYaml(source).documents;
  if (document === undefined) throw new Error('no document');
  const draft = new Draft(document.value);
  change(draft);
  const text = writeDocument(source, draft, draft.value, remarks);
  expect(readYaml(text).documents[0]?.value).toEqual(draft.value);
  return text;
}

describe('[M1] comments', () => {
  const SOURCE = `# about the agent
kind: Agent
version: 1.10 # text, not a number

# how long it may work
iteration_cap: 4 # not more
persona: |
  You help.

  Always.
tags: [a, "b"] # two
`;

  test('stay at what did not change, and follow what was moved', () => {
    const text = written(SOURCE, (draft) => draft.move(['iteration_cap'], ['loop', 'max_iterations']));
    expect(text).toBe(`# about the agent
kind: Agent
version: "1.10" # text, not a number

# how long it may work
loop:
  max_iterations: 4 # not more
persona: |
  You help.

  Always.
tags: [a, "b"] # two
`);
  });

  test('of a part that is gone stand at the end', () => {
    const text = written(SOURCE, (draft) => draft.remove(['iteration_cap']));
    expect(text.endsWith('tags: [a, "b"] # two\n\n# how long it may work\n# not more\n')).toBe(true);
  });

  test('of items of a list stay at their item', () => {
    const source = 'list:\n  # one\n  - a # first\n  # two\n  - b\n  - c # third\n';
    expect(written(source, (draft) => draft.removeItems(['list'], new Set([1])))).toBe(
      'list:\n  # one\n  - a # first\n  - c # third\n\n# two\n',
    );
  });
});

describe('[M1] a remark', () => {
  const remark = (...path: (string | number)[]): Remark[] => [{ path, message: 'is gone' }];

  test('stands before what followed the lost part', () => {
    const text = written('a: 1\nb: 2\nc:\n  d: 3\n', (draft) => draft.remove(['b']), remark('b'));
    expect(text).toBe('a: 1\n# migrate: is gone\nc:\n  d: 3\n');
  });

  test('about the last part stands at the end', () => {
    expect(written('a: 1\nb: 2\n', (draft) => draft.remove(['b']), remark('b'))).toBe('a: 1\n\n# migrate: is gone\n');
  });

  test('about an item stands in its list, also before one that did not change', () => {
    const text = written(
      'list:\n  - a\n  - b: 1\n    c: 2\n',
      (draft) => draft.removeItems(['list'], new Set([0])),
      remark('list', 0),
    );
    expect(text).toContain('# migrate: is gone\n');
    expect(text.indexOf('# migrate')).toBeLessThan(text.indexOf('b: 1'));
  });

  test('is one line, whatever its text', () => {
    const text = written('a: 1\nb: 2\n', (draft) => draft.remove(['a']), [{ path: ['a'], message: 'x\n\ny: z\n---' }]);
    expect(text).toBe('# migrate: x y: z ---\nb: 2\n');
  });
});

describe('[M1] the form of values', () => {
  test('is kept: quotes, flow, long lines and blocks', () => {
    const long = `text: ${'word '.repeat(60)}end`;
    const source = `a: 'x'\nmap: { a: 1, b: [1, 2] }\n${long}\nfold: >-\n  one\n  two\nold: 1\n`;
    const text = written(source, (draft) => draft.move(['old'], ['new']));
    for (const line of ["a: 'x'", long, 'fold: >-']) expect(text).toContain(line);
    expect(text).toContain('map: { a: 1, b: [ 1, 2 ] }');
  });

  test('anchors and aliases become values', () => {
    const text = written('base: &b {x: 1}\nother: *b\nold: 1\n', (draft) => draft.move(['old'], ['new']));
    expect(text).not.toMatch(/[&*]b/);
  });

  test('a text that looks like something else stays a text', () => {
    for (const value of ['1', 'true', 'null', '# no comment', '- x', 'a: b', '', ' x ', '---', 'x\n---\ny', '\u0007']) {
      written('a: 1\n', (draft) => draft.set(['b'], value));
    }
  });

  test('any value is read as it was written, whatever is moved and lost', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'x-y', '1', 'null');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(
        fc.dictionary(key, value, { minKeys: 1, maxKeys: 5 }),
        key,
        key,
        fc.string(),
        (map, from, to, note) => {
          const source = JSON.stringify(map, null, 2);
          written(
            source,
            (draft) => {
              if (from !== to) draft.move([from], [to]);
            },
            [{ path: [from], message: note }],
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});
