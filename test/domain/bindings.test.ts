/** The table of bindings and classes is what every configuration and every entry of a Worker has (K2, K5). */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { unstable_readConfig as readConfig } from 'wrangler';
import { bindingIssue, RUNTIME_ENTRYPOINTS, RUNTIME_OBJECTS } from '../../src/domain/bindings.ts';

const CLASSES = [...Object.values(RUNTIME_OBJECTS), ...RUNTIME_ENTRYPOINTS].toSorted();

/** Not in the table: only deployments with containers have its binding. */
const OF_CONTAINERS = 'RunnerContainer';

function read(file: string): string {
  return readFileSync(file, 'utf8');
}

const OF_FIRST_MIGRATION = [
  'SessionObject',
  'ScheduleObject',
  'CatalogObject',
  'RelicObject',
  'SharedFeedObject',
  'DirectoryObject',
  'StatusObject',
];

interface Config {
  readonly durable_objects: { readonly bindings: readonly { readonly name: string; readonly class_name: string }[] };
  readonly migrations: readonly { readonly new_sqlite_classes?: readonly string[] }[];
}

/** Classes in the lists of `export { … }`. */
function exportedBy(file: string): string[] {
  const lists = [...read(file).matchAll(/\bexport \{([^}]*)\}/g)].map(([, list = '']) => list.split(','));
  const names = lists.flat().map((name) => name.trim());
  return [...new Set(names.filter((name) => /^[A-Z].*(Object|Host|Container)$/.test(name)))];
}

describe('[K5] the classes of the runtime', () => {
  test('are those of src/durable/', () => {
    const files = readdirSync('src/durable', { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    );
    const defined = files.flatMap((name) =>
      [...read(join('src/durable', name)).matchAll(/class (\w+) extends (?:DurableObject|WorkerEntrypoint)\b/g)].map(
        ([, type = '']) => type,
      ),
    );
    expect(defined.toSorted()).toEqual([...CLASSES, OF_CONTAINERS].toSorted());
  });

  test.each(['src/index.ts', 'src/worker.ts', 'template/src/worker.ts', 'examples/code-tools/src/worker.ts'])(
    'are exported by %s',
    (file) => {
      const exported = exportedBy(file).filter((name) => name !== OF_CONTAINERS);
      expect(exported.toSorted()).toEqual(CLASSES);
    },
  );
});

describe.each([
  ['wrangler.toml', undefined],
  ['wrangler.toml', 'workers-ai'],
  ['wrangler.toml', 'containers'],
  ['template/wrangler.toml', undefined],
  ['template/wrangler.toml', 'containers'],
  ['examples/code-tools/wrangler.toml', undefined],
])('[K5] the objects of the runtime in %s (environment: %s)', (config, env) => {
  const { durable_objects: objects, migrations }: Config = readConfig(
    { config, ...(env === undefined ? {} : { env }) },
    { hideWarnings: true },
  );

  test('have their bindings', () => {
    const bound = objects.bindings
      .map((one) => [one.name, one.class_name])
      .filter(([, type]) => type !== OF_CONTAINERS);
    expect(Object.fromEntries(bound)).toEqual(RUNTIME_OBJECTS);
  });

  test('are created by the first migration, which is deployed and never changes, or by later ones', () => {
    const [first] = migrations;
    expect(first?.new_sqlite_classes?.filter((type) => type !== OF_CONTAINERS)).toEqual(OF_FIRST_MIGRATION);
    const created = migrations.flatMap((step) => step.new_sqlite_classes ?? []);
    expect(created.filter((type) => type !== OF_CONTAINERS).toSorted()).toEqual(
      Object.values(RUNTIME_OBJECTS).toSorted(),
    );
  });
});

test('[L1] only the environment workers-ai has the binding of Workers AI', () => {
  const read = (env?: string) => readConfig({ config: 'wrangler.toml', ...(env && { env }) }, { hideWarnings: true });
  expect([read('workers-ai').ai, read().ai]).toEqual([{ binding: 'AI' }, undefined]);
});

test.each([...Object.keys(RUNTIME_OBJECTS), 'FILES', 'RUNNERS', 'ASSETS'])('[K2] no tool may use %s', (name) => {
  expect(bindingIssue(name)).toContain(`${name} is a binding of the runtime`);
  expect(bindingIssue(`MY_${name}`)).toBeNull();
});
