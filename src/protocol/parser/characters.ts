/** Character codes and character classes of the protocol's grammars. */

const TAB = 9;
export const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
export const DOUBLE_QUOTE = 34;
export const DOLLAR = 36;
export const SINGLE_QUOTE = 39;
export const CLOSE_PARENTHESIS = 41;
export const ASTERISK = 42;
export const PLUS = 43;
export const COMMA = 44;
export const HYPHEN = 45;
export const FULL_STOP = 46;
export const SLASH = 47;
export const COLON = 58;
export const LESS = 60;
export const EQUALS = 61;
export const GREATER = 62;
export const OPEN_BRACKET = 91;
export const BACKSLASH = 92;
export const CLOSE_BRACKET = 93;
export const UNDERSCORE = 95;
export const BACKTICK = 96;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;
export const TILDE = 126;
export const BYTE_ORDER_MARK = 0xfeff;

/** ASCII white space. */
export function isSpace(code: number): boolean {
  return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** ASCII letters and digits, and `_`. */
export function isWordCharacter(code: number): boolean {
  const letter = code | 32;
  return (letter >= 97 && letter <= 122) || isDigit(code) || code === UNDERSCORE;
}

/** Like `indexOf`, but returns the text's length if the character does not occur. */
export function indexOrEnd(text: string, character: string, from: number): number {
  const found = text.indexOf(character, from);
  return found === -1 ? text.length : found;
}
