/** The checksum that `store_text` returns: no model can guess it, so an answer that has it proves the whole text. */
import { createHash } from 'node:crypto';

const HEX_CHARS = 8;

/** @param text white space at both ends does not count */
export function checksumOf(text: string): string {
  return createHash('sha256').update(storedText(text)).digest('hex').slice(0, HEX_CHARS);
}

/** A text as it is stored. */
export function storedText(text: string): string {
  return text.replaceAll('\r\n', '\n').trim();
}
