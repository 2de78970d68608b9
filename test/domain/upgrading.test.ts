/** docs/upgrading.md has the lines for the newest object class (K5). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RUNTIME_ENTRYPOINTS, RUNTIME_OBJECTS } from '../../src/domain/bindings.ts';

const PAGE = readFileSync('docs/upgrading.md', 'utf8');
const CONFIG = readFileSync('wrangler.toml', 'utf8');

/** The blocks of a language, in order. */
function blocksOf(language: string): string {
  return [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))]
    .map(([, text = '']) => text)
    .join('\n');
}

const migration = [...CONFIG.matchAll(/^\[\[migrations\]\]\n(?:.+\n)+/gm)].at(-1)?.[0] ?? '';
const classes = [...(/new_sqlite_classes = \[(.*)\]/.exec(migration)?.[1] ?? '').matchAll(/"(\w+)"/g)].map(
  ([, name = '']) => name,
);

test('[K5] a note has the newest migration of wrangler.toml, and the bindings of its classes', () => {
  expect(classes.length).toBeGreaterThan(0);
  expect(blocksOf('toml')).toContain(migration);
  for (const name of classes) {
    const [binding] = Object.entries(RUNTIME_OBJECTS).find(([, type]) => type === name) ?? [];
    const block = `[[durable_objects.bindings]]\nname = "${binding}"\nclass_name = "${name}"\n`;
    expect(CONFIG).toContain(block);
    expect(blocksOf('toml')).toContain(block);
  }
});

test('[K5] a note exports them, and every entrypoint', () => {
  const exported = [...blocksOf('ts').matchAll(/export \{([^}]*)\} from 'cortex-edge';/g)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.trim()),
  );
  expect(exported).toEqual(expect.arrayContaining([...classes, ...RUNTIME_ENTRYPOINTS]));
  const known = new Set([...Object.values(RUNTIME_OBJECTS), ...RUNTIME_ENTRYPOINTS]);
  expect(exported.filter((name) => !known.has(name))).toEqual([]);
});
