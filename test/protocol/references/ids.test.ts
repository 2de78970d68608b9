/** Ids, output keys and feed ids (P12). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { idIssue } from '../../../src/protocol/references/ids.ts';

const issue = (kind: string, shown: string): string =>
  `${kind} ${shown} is not allowed: 1 to ${limits.idChars} characters, none of < > & " ', white space or control characters`;

describe('[P12] an id', () => {
  test.each(['a', 'Z', '0', '_', '-', '.', '/', ':', '$', '`', '{', '@', '~', 'é', '漢', '\u00a1', 'fetch_1.page-2'])(
    'may be %j',
    (id) => expect(idIssue('id', id)).toBeNull(),
  );
  test.each(['<', '>', '&', '"', "'", ' ', '\t', '\n', '\u00a0', '\u0000', '\u001f', '\u007f', '\u0080', '\u009f'])(
    'may not contain %j',
    (character) => {
      for (const id of [character, `a${character}b`]) {
        expect(idIssue('id', id)).toBe(issue('id', JSON.stringify(id)));
      }
    },
  );
  test('has 1 to 64 characters', () => {
    expect(idIssue('output_key', '')).toBe(issue('output_key', '""'));
    expect(idIssue('output_key', 'x'.repeat(limits.idChars))).toBeNull();
    const long = 'x'.repeat(limits.idChars + 1);
    expect(idIssue('output_key', long)).toBe(issue('output_key', `"${long}"`));
  });
  test('is quoted up to the length of an excerpt', () => {
    const most = 'x'.repeat(limits.excerptChars);
    expect(idIssue('id', most)).toBe(issue('id', `"${most}"`));
    expect(idIssue('id', `${most}y`)).toBe(issue('id', `"${most}…"`));
  });
});
