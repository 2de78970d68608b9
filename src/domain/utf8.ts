/** Sizes of text as UTF-8. */
const encoder = new TextEncoder();

/** Number of bytes. */
export const utf8Length = (text: string): number => encoder.encode(text).length;
