/**
 * Converts YAML text to the library's tokens and checks all limits before anything is composed (M1): composing nested,
 * wide or complex keys takes more than linear time. Lexing and token parsing take linear time.
 */
import { CST, Lexer, Parser } from 'yaml';
import { limits } from '../../domain/limits.ts';

/** An error in a text, with its offset. */
export interface YamlFlaw {
  readonly offset: number;
  readonly message: string;
}

/** Markers that the lexer inserts between tokens; they are not part of the text. */
const MARKS: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/** Remaining number of tokens. */
export interface TokenQuota {
  left: number;
}

/**
 * The token tree of every document in `text`.
 *
 * @param onNewLine receives the offset of every line
 * @param quota tokens that all files of a load share; reduced by what is read
 * @returns the first violation of a limit, or use of an unsupported feature: directives other than `%YAML 1.2`, and
 *   explicit keys (`? key`)
 */
export function readTokens(
  text: string,
  onNewLine: (offset: number) => void,
  quota: TokenQuota,
): { readonly tokens: CST.Token[] } | { readonly flaw: YamlFlaw } {
  if (text.length > limits.yamlChars) {
    return flaw(0, `the file has ${text.length} characters (allowed: ${limits.yamlChars})`);
  }
  const parser = new Parser(onNewLine);
  onNewLine(0);
  const tokens: CST.Token[] = [];
  let offset = 0;
  let count = 0;
  let aliases = 0;
  let flowDepth = 0;
  let isScalar = false;
  try {
    for (const lexeme of new Lexer().lex(text)) {
      count += 1;
      quota.left -= 1;
      if (quota.left < 0) {
        return flaw(
          0,
          `the manifests have more than ${limits.catalogTokens} YAML tokens in total; this file was not read`,
        );
      }
      if (count > limits.yamlTokens) {
        return flaw(offset, `the file has more than ${limits.yamlTokens} YAML tokens; split it into several files`);
      }
      const type = isScalar ? 'scalar' : CST.tokenType(lexeme);
      isScalar = lexeme === CST.SCALAR && !isScalar;
      switch (type) {
        case 'flow-map-start':
        case 'flow-seq-start':
          flowDepth += 1;
          if (flowDepth > limits.jsonDepth) return flaw(offset, tooDeep());
          break;
        case 'flow-map-end':
        case 'flow-seq-end':
          flowDepth = Math.max(0, flowDepth - 1);
          break;
        case 'explicit-key-ind':
          return flaw(offset, 'explicit keys (? key) are not supported; write "key: value"');
        case 'directive-line':
          if (!/^%YAML[ \t]+1\.2[ \t]*(#.*)?$/.test(lexeme.trimEnd())) {
            return flaw(offset, 'the only supported directive is "%YAML 1.2"');
          }
          break;
        case 'alias':
          aliases += 1;
          if (aliases > limits.manifestAliases) {
            return flaw(offset, `the file has more than ${limits.manifestAliases} aliases`);
          }
          break;
        default:
      }
      for (const token of parser.next(lexeme)) tokens.push(token);
      if (type === 'scalar' || !MARKS.has(lexeme)) offset += lexeme.length;
    }
    for (const token of parser.end()) tokens.push(token);
  } catch (fault) {
    // the token parser is recursive when it closes nested collections
    if (fault instanceof RangeError) return flaw(0, tooDeep());
    throw fault;
  }
  const deep = tooDeepAt(tokens);
  return deep === null ? { tokens } : flaw(deep, tooDeep());
}

function flaw(offset: number, message: string): { readonly flaw: YamlFlaw } {
  return { flaw: { offset, message } };
}

function tooDeep(): string {
  return `the file is nested deeper than ${limits.jsonDepth} levels`;
}

/** The offset of the first collection beyond the maximum depth, or null. Not recursive. */
function tooDeepAt(tokens: readonly CST.Token[]): number | null {
  const open: { readonly token: CST.Token; readonly depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > limits.jsonDepth) return token.offset;
    if (token.type === 'document') {
      if (token.value !== undefined) open.push({ token: token.value, depth });
    } else if ('items' in token) {
      for (const { key, value } of token.items) {
        if (key !== undefined && key !== null) open.push({ token: key, depth: depth + 1 });
        if (value !== undefined) open.push({ token: value, depth: depth + 1 });
      }
    }
  }
  return null;
}
