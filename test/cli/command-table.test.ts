/** All commands of `cortex`: their help, their examples, and the pages that list them (K4). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../cli/command-table.ts';
import { parse } from '../../cli/dispatch.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { dispatched } from './dispatched.ts';
import type { Dispatched } from './dispatched.ts';

const read = (file: string): string => readFileSync(join(PACKAGE_ROOT, file), 'utf8');
const names = [...COMMANDS.keys()];
const commands = await Promise.all(
  [...COMMANDS].map(async ([name, load]) => ({ name, command: (await load()).command })),
);

const cortex = async (...args: string[]): Promise<Dispatched> => await dispatched(args);

/** The words of a command line of an example; quotes only hold a word together. */
const wordsOf = (line: string): string[] => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, a, b]) => a ?? b ?? '');

describe.each(commands)('[K4] cortex $name', ({ name, command }) => {
  test('has the name of the table', () => {
    expect(command.name).toBe(name);
  });

  test('has an example that parses', () => {
    const [program, first, ...args] = wordsOf(command.example);
    expect([program, first]).toEqual(['cortex', name]);
    expect(() => parse(command, args)).not.toThrow();
  });

  test('--help prints usage, each option, and the example', async () => {
    const { out, err, code } = await cortex(name, '--help');
    expect([err, code]).toEqual(['', 0]);
    expect(out).toMatch(new RegExp(`^usage: cortex ${name}( .*)? \\[--json\\]\n`));
    expect(out).toContain(`Example:\n  ${command.example}\n`);
    const options = [...Object.keys(command.options ?? {}), ...(command.isRemote === true ? ['url', 'key'] : [])];
    const [usage = '', help = ''] = [out.split('\n')[0], out.slice(out.indexOf('\n'))];
    for (const option of options)
      expect([option, usage, help]).toEqual([
        option,
        expect.stringContaining(`--${option}`),
        expect.stringContaining(`--${option}`),
      ]);
  });

  test('refuses an unknown option, as JSON with --json', async () => {
    const { out, err, code } = await cortex(name, '--hlep');
    expect([out, code]).toEqual(['', 2]);
    expect(err).toContain("Unknown option '--hlep' (did you mean --help?)");
    expect(err).toContain(`\nusage: cortex ${name}`);
    const json = await cortex(name, '--hlep', '--json');
    expect([json.code, json.err]).toEqual([2, '']);
    expect(JSON.parse(json.out)).toEqual({ error: { code: 'usage', message: expect.stringContaining('--hlep') } });
  });

  test('refuses too many arguments', async () => {
    const [, most] = command.positionals;
    const { err, code } = await cortex(name, ...Array.from({ length: most + 1 }, () => 'x'));
    expect(err).toContain(`cortex ${name} takes ${most === 0 ? 'no arguments' : 'at most'}`);
    expect(code).toBe(2);
  });
});

test.each([[], ['--help'], ['-h'], ['help']])('[K4] cortex %s lists all commands', async (...args) => {
  const { out, code } = await cortex(...args);
  expect(code).toBe(0);
  const listed = [...out.matchAll(/^ {2}([a-z-]+) {2,}\S/gm)].map(([, name]) => name);
  expect(listed).toEqual(names);
});

test('[K4] cortex help <command> is its --help', async () => {
  expect((await cortex('help', 'plan')).out).toBe((await cortex('plan', '--help')).out);
});

test.each(['--version', '-v'])('[K4] cortex %s prints the version of the package', async (flag) => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(await cortex(flag)).toEqual({ out: `${version}\n`, err: '', code: 0 });
});

test.each([
  ['vaildate', 'unknown command "vaildate" (did you mean validate? cortex --help lists the commands)'],
  ['--hurry', 'unknown option "--hurry" (cortex --help lists the commands)'],
  ['constructor', 'unknown command "constructor" (cortex --help lists the commands)'],
])('[K4] cortex %s is refused', async (name, said) => {
  expect(await cortex(name)).toEqual({ out: '', err: `${said}\n`, code: 2 });
});

test('[K4] only what was typed wrongly is followed by the usage', async () => {
  const { out, err, code } = await cortex('sessions', 'list', '--url', 'http://127.0.0.1:9');
  expect([out, code]).toEqual(['', 3]);
  expect(err).toContain('no system at http://127.0.0.1:9');
  expect(err).not.toContain('usage:');
});

describe('[K4] the pages list exactly the commands', () => {
  const page = read('docs/cli.md');
  const table = page.slice(page.indexOf('\n## Commands'), page.indexOf('\n## Which system'));
  const rows = [...table.matchAll(/^\| `([a-z-]+)` \| (.+) \| `([^`]+)` \|$/gm)];

  test('docs/cli.md, with their examples, in the order of the help', () => {
    const written = rows.map(([, name, , example]) => ({ name, example }));
    expect(written).toEqual(commands.map(({ name, command: { example } }) => ({ name, example })));
  });

  test('docs/cli.md, with the JSON of each', () => {
    const json = page.slice(page.indexOf('\n## JSON'), page.indexOf('\n## A session'));
    const missing = names.filter((name) => !new RegExp(`\`${name}[\` ]`).test(json));
    expect(missing).toEqual([]);
  });
});

test('[K4] every npm script of a command calls the command', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };
  const called = Object.values(scripts).flatMap((text) => /cli\/main\.ts (\S+)$/.exec(text)?.[1] ?? []);
  expect(called.length).toBeGreaterThan(10);
  expect(called.filter((name) => !COMMANDS.has(name))).toEqual([]);
});
