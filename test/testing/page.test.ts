/** The examples of docs/testing-agents.md are tests that run. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (path: string): string => readFileSync(path, 'utf8');

test('[K6] every example of the page is a test of examples/code-tools', () => {
  const tests = read('examples/code-tools/test/clerk.test.ts');
  const blocks = [...read('docs/testing-agents.md').matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block = '']) => block);
  expect(blocks.length).toBeGreaterThan(3);
  for (const block of blocks) {
    const [imports = '', body = block] = block.split(/\n\n(?=test\()/);
    expect(tests).toContain(body.trim());
    if (body !== block) expect(tests).toContain(imports.trim());
  }
});
