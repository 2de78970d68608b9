/** Media types of files, found in their bytes (C2). */
import { describe, expect, test } from 'vitest';
import { canHaveType, readMediaType, sniffMediaType } from '../../src/policies/media-type.ts';

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const PNG = hex('89504e470d0a1a0a0000000d');
const ZIP = hex('504b030414000000');

describe('[C2] the type that bytes show', () => {
  test.each([
    ['PNG', PNG, 'image/png'],
    ['GIF', utf8('GIF89a…'), 'image/gif'],
    ['WebP', utf8('RIFF\u0001\u0001\u0001\u0001WEBPVP8 '), 'image/webp'],
    ['RIFF that is not WebP', utf8('RIFF\u0001\u0001\u0001\u0001WAVEfmt '), 'text/plain'],
    ['ZIP', ZIP, 'application/zip'],
    ['SVG', utf8('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'text/plain'],
    ['UTF-8', utf8('größer'), 'text/plain'],
    ['a byte that is not UTF-8', hex('61ff62'), 'application/octet-stream'],
    ['a null byte', hex('610062'), 'application/octet-stream'],
    ['a cut PNG', PNG.slice(0, 4), 'application/octet-stream'],
  ])('%s', (_name, bytes, type) => {
    expect(sniffMediaType(bytes)).toBe(type);
  });

  test.each<[Uint8Array, string, boolean]>([
    [PNG, 'image/png', true],
    [PNG, 'image/jpeg', false],
    [PNG, 'application/octet-stream', true],
    [utf8('a,b'), 'text/csv', true],
    [utf8('a,b'), 'image/png', false],
    [utf8('{}'), 'application/json', true],
    [hex('00ff'), 'text/csv', false],
    [hex('00ff'), 'application/x-unknown', true],
    [ZIP, 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', true],
  ])('%# is compared with the stated one', (bytes, type, can) => {
    expect(canHaveType(bytes, type)).toBe(can);
  });

  test.each([
    ['IMAGE/PNG', 'image/png'],
    ['text/plain; charset=utf-8', 'text/plain'],
    ['png', null],
    ['image/png\nx: y', null],
  ])('%j is read as %j', (stated, type) => {
    expect(readMediaType(stated)).toBe(type);
  });
});
