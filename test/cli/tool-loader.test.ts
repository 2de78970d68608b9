/** Modules that end or block the thread that loads them (K2). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadTools } from '../../cli/project/tool-loader.ts';
import type { BundledTool, LoadedTools, StartTimer } from '../../cli/project/tool-loader.ts';
import { folderOfEach } from './scene.ts';

let root = '';
folderOfEach((made) => (root = made));

/** A module that defines a tool, as far as the loader can see. */
const good = (file: string): string => {
  const schema = JSON.stringify(join(import.meta.dirname, '../../node_modules/zod/index.js'));
  return `import { z } from ${schema};
export default { name: '${file}', description: '', effects: 'pure', parameters: z.object({}), run: () => null };`;
};

/** Loads modules; the limit of those in `late` is over at once, that of the others never. */
async function load(modules: Readonly<Record<string, string>>, late: readonly string[] = []): Promise<LoadedTools> {
  const tools = Object.entries(modules).map(([file, text], at): BundledTool => {
    const module = join(root, `${at}.mjs`);
    writeFileSync(module, text);
    return { file, module };
  });
  const startTimer: StartTimer = (expire, _ms, file) => {
    const timer = late.includes(file) ? setImmediate(expire) : null;
    return () => timer !== null && clearImmediate(timer);
  };
  return await loadTools(tools, undefined, startTimer);
}

test.each<[name: string, text: string, message: string]>([
  ['ends the process', 'process.exit(0);', 'cannot be loaded: it ended the process'],
  [
    'awaits what never settles',
    'await new Promise(() => undefined);',
    'cannot be loaded: a top-level await never settles',
  ],
  ['never ends', 'while (true) {}', 'cannot be loaded: it took longer than 10 s'],
  [
    'waits for something for ever',
    'setInterval(() => undefined, 1e6); await new Promise(() => undefined);',
    'cannot be loaded: it took longer than 10 s',
  ],
  [
    'throws outside of its promise',
    'queueMicrotask(() => { throw new Error("later"); }); await new Promise(() => undefined);',
    'cannot be loaded: later',
  ],
])('[K2] a module that %s is one problem; the modules before and after it load', async (_name, text, message) => {
  const late = message.includes('10 s') ? ['bad'] : [];
  const found = await load({ a: good('a'), bad: text, z: good('z') }, late);
  expect(found.get('bad')).toBe(message);
  for (const file of ['a', 'z']) expect(found.get(file)).toMatchObject({ file, name: file });
  expect(found.size).toBe(3);
});

test('[K2] a module is not blamed for what an earlier one has started', async () => {
  const slow = `await new Promise((resolve) => setImmediate(resolve));\n${good('slow')}`;
  const found = await load({ bad: `setImmediate(() => process.exit(0));\n${good('bad')}`, slow });
  expect(found.get('bad')).toMatchObject({ name: 'bad' });
  expect(found.get('slow')).toMatchObject({ name: 'slow' });
});

test('[K2] what a tool leaves running does not keep the loader', async () => {
  const found = await load({ a: `setInterval(() => undefined, 1e6);\n${good('a')}` });
  expect(found.get('a')).toMatchObject({ name: 'a' });
});
