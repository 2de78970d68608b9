/** The report of the public API leaves nothing out (K1). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { declarationsOf } from '../../scripts/api-declarations.ts';
import type { EntryDeclarations } from '../../scripts/api-declarations.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cortex-api-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Of the entry `pkg`, which is `index.d.ts`, and of others by their names. */
function read(
  files: Readonly<Record<string, string>>,
  internal: readonly string[] = [],
  others: Readonly<Record<string, string>> = {},
): EntryDeclarations {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, 'dist', file)), { recursive: true });
    writeFileSync(join(folder, 'dist', file), text);
  }
  const { pkg } = declarationsOf(folder, { pkg: 'dist/index.d.ts', ...others }, internal);
  if (pkg === undefined) throw new Error('no report');
  return pkg;
}

describe('[K1] the report of an entry', () => {
  test('has values and types, also those that it passes on under other names', () => {
    const { values, types } = read({
      'index.d.ts':
        "import { one } from './a.js';\nexport { one };\nexport { type Two as Second } from './a.js';\nexport * from './b.js';\n",
      'a.d.ts': 'export declare function one(): void;\nexport interface Two {\n    readonly two: 2;\n}\n',
      'b.d.ts':
        '/** Three. */\nexport type Three = {\n    readonly a: 1;\n}\n/** Or. */\n | {\n    readonly b: 2;\n};\n',
    });
    expect(values).toEqual(['export declare function one(): void;']);
    expect(types).toEqual([
      'export interface Two {\n    readonly two: 2;\n}',
      'export type Three = {\n    readonly a: 1;\n}\n | {\n    readonly b: 2;\n};',
    ]);
  });

  test('has what it adds to other packages', () => {
    const block = "declare module 'vitest' {\n    interface Matchers<R> {\n        toPass(): R;\n    }\n}";
    expect(read({ 'index.d.ts': `${block}\n` })).toEqual({ values: [], types: [], parts: [], augmentations: [block] });
  });

  test('has the parts of its types that their module does not export, and constants that types come from', () => {
    const { parts } = read({
      'index.d.ts': "export type { Run } from './a.js';\n",
      'a.d.ts':
        "import type { MODES } from './b.js';\ninterface Inner {\n    readonly mode: (typeof MODES)[number];\n}\n" +
        'export interface Run {\n    readonly inner: Inner;\n}\nexport {};\n',
      'b.d.ts': "export declare const MODES: readonly ['a', 'b'];\n",
    });
    expect(parts).toEqual([
      'interface Inner {\n    readonly mode: (typeof MODES)[number];\n}',
      "export declare const MODES: readonly ['a', 'b'];",
    ]);
  });

  test('has no constructor of a class that is exported as a type', () => {
    const files = {
      'index.d.ts': "export type { Run } from './a.js';\n",
      'a.d.ts':
        "import type { Hidden } from './b.js';\nexport declare class Run {\n    #private;\n    constructor(hidden: Hidden);\n    end(): void;\n}\n",
      'b.d.ts': 'export interface Hidden {\n}\n',
    };
    expect(read(files).types).toEqual(['export declare class Run {\n    end(): void;\n}']);
    const asValue = { ...files, 'index.d.ts': "export { Run } from './a.js';\n" };
    expect(() => read(asValue)).toThrow('Run refers to Hidden');
  });
});

describe('[K1] the report is refused', () => {
  const FILES = {
    'index.d.ts': "export type { Step } from './a.js';\n",
    'a.d.ts': "import type { ModelRequest } from './b.js';\nexport type Step = (request: ModelRequest) => string;\n",
    'b.d.ts': 'export interface ModelRequest {\n    readonly model: string;\n}\n',
  };

  test('if a signature names a type that no entry exports', () => {
    expect(() => read(FILES)).toThrow('pkg: Step refers to ModelRequest (b.d.ts), which no entry point exports');
    expect(read(FILES, [], { 'pkg/b': 'dist/b.d.ts' }).types).toHaveLength(1);
    expect(read(FILES, ['b.d.ts#ModelRequest']).types).toHaveLength(1);
    expect(read(FILES, ['b.d.ts']).types).toHaveLength(1);
  });

  test('if a type is listed as internal, and nothing refers to it', () => {
    expect(() => read(FILES, ['b.d.ts', 'b.d.ts#Gone'])).toThrow('b.d.ts#Gone is listed as internal');
  });

  test.each([
    ['export { gone };\n', 'cannot resolve the export "gone"'],
    ["import { gone } from './b.js';\nexport { gone };\n", '"gone" is not exported by'],
    ["export { gone } from './b.js';\n", '"gone" is not exported by'],
    ['export { default as };\n', 'cannot read "default as"'],
  ])('if an export cannot be resolved: %j', (text, message) => {
    expect(() => read({ ...FILES, 'index.d.ts': text })).toThrow(message);
  });
});
