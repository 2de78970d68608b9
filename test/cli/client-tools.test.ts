/** The results of client tools that are typed at the prompt of `npm run chat` (C3), and the tools that it offers. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { resultOf } from '../../cli/chat/client-tools.ts';
import { optionsOf } from '../../cli/chat/options.ts';
import type { OfferedTool } from '../../cli/chat/options.ts';
import type { CommandCall } from '../../cli/command.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

test.each([
  ['{"city": "Bern"}', { output: { city: 'Bern' } }],
  ['7', { output: 7 }],
  ['in Bern', { output: 'in Bern' }],
  ['{"city": ', { output: '{"city":' }],
  ['', { output: '' }],
  ['!no signal', { error: { message: 'no signal' } }],
  ['!', { error: { message: 'The tool failed' } }],
])('[C3] %j is posted as %j', (line, result) => {
  expect(resultOf(line)).toEqual(result);
});

const offered = (values: CommandCall['values']): readonly OfferedTool[] =>
  optionsOf({ values, positionals: [], environment: {}, tell: () => undefined }).tools;

test('[C3] --tool and --tools offer tools', () => {
  const tool = { name: 'scan', description: 'Scans.', parameters: { type: 'object' } };
  const file = join(folder, 'tools.json');
  writeFileSync(file, JSON.stringify([tool]));
  expect(offered({ tool: ['a', 'b'], tools: file })).toEqual([
    expect.objectContaining({ name: 'a' }),
    expect.objectContaining({ name: 'b' }),
    tool,
  ]);
});

test.each(['{', '{}'])('[C3] a file of tools with %j is refused with its name', (text) => {
  const file = join(folder, 'wrong.json');
  writeFileSync(file, text);
  expect(() => offered({ tools: file })).toThrow(`--tools ${file}: `);
});
