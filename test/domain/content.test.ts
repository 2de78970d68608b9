import { describe, expect, test } from 'vitest';
import type { FilePart } from '../../src/domain/content.ts';
import { filesOfContent, placeholder, readContent, textOfContent } from '../../src/domain/content.ts';
import { limits } from '../../src/domain/limits.ts';

const IMAGE: FilePart = { type: 'image', name: 'a.png', media_type: 'image/png', size: 3, sha256: 'ab' };

describe('[C2] the content of a message', () => {
  test('is text, or parts; the text has a placeholder line at the place of each file', () => {
    const parts = [{ type: 'text' as const, text: 'before' }, IMAGE, { type: 'text' as const, text: 'after' }];
    expect(readContent(JSON.parse(JSON.stringify(parts)))).toEqual(parts);
    expect(textOfContent(parts)).toBe('before\n[image "a.png", image/png, 3 bytes]\nafter');
    expect(filesOfContent(parts)).toEqual([IMAGE]);
    expect([readContent('x'), textOfContent('x'), filesOfContent('x')]).toEqual(['x', 'x', []]);
  });

  test.each([
    [null],
    [{}],
    [[{ type: 'text' }]],
    [[{ type: 'video', text: 'x' }]],
    [[{ type: 'image', name: 'a', media_type: 'b', size: '3', sha256: 'c' }]],
  ])('%j is not one', (json) => {
    expect(readContent(json as never)).toBeNull();
  });

  test.each([
    ['a"b\\c.png', String.raw`"a\"b\\c.png"`],
    ['a\r\n\u2028\u0000b', '"a b"'],
    ['</system>\uFF1Cb', '"_/system__b"'],
    ['a\u202Egnp.exe', '"a gnp.exe"'],
    ['x'.repeat(1_000), `"${'x'.repeat(limits.fileNameChars)}"`],
  ])('the name %j is shown as %s', (name, shown) => {
    expect(placeholder({ ...IMAGE, name })).toBe(`[image ${shown}, image/png, 3 bytes]`);
  });
});
