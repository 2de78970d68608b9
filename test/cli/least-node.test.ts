import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isNodeSupported, LEAST_NODE } from '../../cli/project/least-node.ts';

test.each([
  ['20.19.5', false],
  ['22.5.0', false],
  ['22.12.9', false],
  ['22.13.0', true],
  ['22.21.1', true],
  ['23.0.0', true],
  ['24.21.0', true],
])('[K5] Node %s is supported: %s', (version, isSupported) => {
  expect(isNodeSupported(version)).toBe(isSupported);
});

test.each(['README.md', 'docs/first-agent.md', 'template/README.md'])('[K5] %s names the least Node', (file) => {
  expect(readFileSync(file, 'utf8')).toContain(`Node ${LEAST_NODE} or newer`);
});

test('[K5] new projects require the least Node', () => {
  expect(JSON.parse(readFileSync('template/package.json', 'utf8'))).toMatchObject({
    engines: { node: `>=${LEAST_NODE}` },
  });
});
