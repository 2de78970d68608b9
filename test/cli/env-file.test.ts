/** The file with the settings of the Worker (H8): what wrangler reads is what was written. */
import { parseEnv } from 'node:util';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { envFileText } from '../../cli/system/env-file.ts';

test('[H8] values have a form in which only dollars are escaped', () => {
  expect(envFileText({ A: '[{"a": "b"}]', B: "it's $x", C: '' })).toBe("A='[{\"a\": \"b\"}]'\nB=`it's \\$x`\nC=''\n");
});

test('[H8] any value is read back by a reader of such files, with its dollars escaped', () => {
  const value = fc
    .string({ unit: fc.constantFrom('a', '"', "'", '`', '$', '\\\\', '\n', '#', ' ', '{', '=') })
    .filter((text) => !(text.includes("'") && text.includes('`')) && !text.endsWith('\\'));
  fc.assert(
    fc.property(value, (text) => {
      expect(parseEnv(envFileText({ NAME: text }))['NAME']).toBe(text.replaceAll('$', '\\$'));
    }),
  );
});

test('[H8] a value that cannot be written is refused by name', () => {
  for (const text of ["'`", 'a\\']) expect(() => envFileText({ POLICIES: text })).toThrow(/^POLICIES cannot be passed/);
});
