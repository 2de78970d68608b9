/**
 * The rules of a grammar, in GBNF: the rules that all agents share, and the list that collects the rules of one
 * agent.
 *
 * An upper-case name is a lexeme: it consists of characters and other lexemes only. GBNF does not need this
 * distinction, but Lark does: its lexer takes the longest match and does not backtrack. Therefore each run of free
 * text and the tag that ends it form one lexeme.
 */
import { MANIFEST_ACTION_TYPES } from '../../domain/action-types.ts';
import { FEED_TYPES } from '../../domain/manifests/feed.ts';

/** A protocol tag, recognised by its first two letters: `<t` is text, `<th` is not. */
const TAG_IN_THOUGHT =
  '"/"? ([tT] [^hH<\\n] | [aA] [^cC<\\n] | [rR] [^eE<\\n] | [cC] [^oO<\\n] | [sS] [^yY<\\n] | [^tTaArRcCsS</\\n])';
/** In a response only its own closing tag is a tag (P9). */
const TAG_IN_RESPONSE = '([^/<\\n] | "/" [^rR/<\\n])';

/**
 * The text of a block, line by line, because a code fence hides the tags in it. Every open fence is closed before
 * the block's next tag (P1, P2, P9).
 *
 * The only white space allowed is spaces, tabs and line feeds. The parser counts other kinds as white space before a
 * fence, and models do not need them.
 */
function blockText(block: string, notATag: string): string {
  return `
${block}-LESS ::= "<"+ ${notATag}
${block}-REST ::= ([^<\\n\\u000B-\\u000D] | ${block}-LESS)*
${block}-LINE ::= [ \\t]* (([^ \\t<\`~\\n\\u000B-\\u000D] | ${block}-LESS | [\`~]{1,2} ([^<\`~\\n\\u000B-\\u000D] | ${block}-LESS)) ${block}-REST)?
${block}-FENCE ::= [ \\t]* "\`\`\`" [^<$\`~\\n\\u000B-\\u000D]* "\\n" (${block}-LINE "\\n")* [ \\t]* "\`\`\`" [ \\t]*
${block}-LINES ::= (${block}-LINE | ${block}-FENCE) ("\\n" (${block}-LINE | ${block}-FENCE))*`;
}

const SHARED = `
root ::= GAP? (idle-thought GAP?)* work
work ::= (acting-thought | "<action" action) GAP? further? | response (BREAK further?)?
further ::= (idle-thought | acting-thought | "<action" action) GAP? further? | response (BREAK further?)?
GAP ::= [ \\t\\n]{1,8}
# inline code in a response hides the rest of its line (P9)
BREAK ::= "\\n" GAP?
idle-thought ::= "<thought>" TO-CLOSE
acting-thought ::= "<thought>" TO-ACTION action (MORE-TO-ACTION action)* MORE-TO-CLOSE
response ::= "<response" (" final=\\"true\\"" | " final=\\"false\\"")? ">" RESPONSE-END
RESPONSE-END ::= RESPONSE-LINES "</response>"
TO-ACTION ::= THOUGHT-LINES "<action"
TO-CLOSE ::= THOUGHT-LINES "</thought>"
MORE-TO-ACTION ::= THOUGHT-REST ("\\n" THOUGHT-LINES)? "<action"
MORE-TO-CLOSE ::= THOUGHT-REST ("\\n" THOUGHT-LINES)? "</thought>"
${blockText('THOUGHT', TAG_IN_THOUGHT)}
${blockText('RESPONSE', TAG_IN_RESPONSE)}

END-TAG ::= ">" SPACE?
END-ACTION ::= SPACE? "</action>"
ID ::= [A-Za-z_] [A-Za-z0-9_]{0,63}
QUOTED-ID ::= "\\"" ID "\\""
identity ::= (ID-ATTRIBUTE MODE-ATTRIBUTE? | MODE-ATTRIBUTE ID-ATTRIBUTE?)?
ID-ATTRIBUTE ::= " id=" QUOTED-ID
MODE-ATTRIBUTE ::= " mode=\\"" ("async" | "sync" | "fire_and_forget") "\\""
attributes ::= (DEPENDS-ON OUTPUT-KEY? | OUTPUT-KEY DEPENDS-ON?)? WAIT-FOR-ALL? TIMEOUT? RETRY? ON-ERROR? WHEN? PRIORITY? IDEMPOTENCY-KEY? CACHE-TTL?
DEPENDS-ON ::= " depends_on=\\"" (ID ("," " "? ID)*)? "\\""
OUTPUT-KEY ::= " output_key=" QUOTED-ID
WAIT-FOR-ALL ::= " wait_for_all=\\"" BOOLEAN "\\""
TIMEOUT ::= " timeout=\\"" SECONDS "\\""
RETRY ::= " retry=\\"" ATTEMPTS "\\""
ON-ERROR ::= " on_error=" FAILURE-POLICY
WHEN ::= " when=\\"" CONDITION "\\""
PRIORITY ::= " priority=\\"" RANK "\\""
IDEMPOTENCY-KEY ::= " idempotency_key=" KEY
CACHE-TTL ::= " cache_ttl=\\"" CACHE-SECONDS "\\""
depends-on ::= COMMA "\\"depends_on\\"" COLON OPEN-LIST (QUOTED-ID (COMMA QUOTED-ID)*)? CLOSE-LIST
output-key ::= COMMA "\\"output_key\\"" COLON QUOTED-ID
fields ::= (depends-on output-key? | output-key depends-on?)? (COMMA "\\"wait_for_all\\"" COLON BOOLEAN)? (COMMA "\\"timeout\\"" COLON SECONDS)? (COMMA "\\"retry\\"" COLON ATTEMPTS)? (COMMA "\\"on_error\\"" COLON FAILURE-POLICY)? (COMMA "\\"when\\"" COLON NON-BLANK)? (COMMA "\\"priority\\"" COLON RANK)? (COMMA "\\"idempotency_key\\"" COLON KEY)? (COMMA "\\"cache_ttl\\"" COLON CACHE-SECONDS)?
SECONDS ::= "0." [1-9] [0-9]? | [1-9] [0-9]{0,2} ("." [0-9]{1,3})? | [1-2] [0-9]{3} | "3" [0-5] [0-9]{2} | "3600"
CACHE-SECONDS ::= "0" | [1-9] [0-9]{0,5}
ATTEMPTS ::= [1-9] | "10"
FAILURE-POLICY ::= "\\"fail\\"" | "\\"skip\\"" | "\\"retry\\""
RANK ::= "0" | "-"? [1-9] [0-9]{0,3}
KEY ::= "\\"" [A-Za-z0-9_.:-]{1,64} "\\""
# CEL inside double quotes: its strings use single quotes, and a brace could be read as the start of the body
CONDITION ::= [^"\\\\{\\[ \\u0000-\\u001F] [^"\\\\{\\u0000-\\u001F]*

SPACE ::= " " | "\\n" [ \\t]{0,20}
COMMA ::= "," SPACE?
COLON ::= ":" SPACE?
OPEN ::= "{" SPACE?
CLOSE ::= SPACE? "}"
OPEN-LIST ::= "[" SPACE?
CLOSE-LIST ::= SPACE? "]"
CHARACTER ::= [^"\\\\\\u0000-\\u001F] | "\\\\" (["\\\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))
STRING ::= "\\"" CHARACTER* "\\""
NON-BLANK ::= "\\"" (" " | "\\\\" [nrt])* ([^" \\\\\\u0000-\\u001F] | "\\\\" ["\\\\/]) CHARACTER* "\\""
PATH ::= ID ("." [A-Za-z0-9_]+ | "[" [0-9]{1,9} "]")*
# a string that is exactly one reference: on dispatch it becomes a value of any type (P12)
REFERENCE ::= "\\"$" (PATH | "{" PATH "}") "\\""
BOOLEAN ::= "true" | "false"
NUMBER ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})? ([eE] ("+" | "-")? [0-9]{1,2})?
value ::= object | list | STRING | NUMBER | BOOLEAN | "null"
object ::= OPEN (STRING COLON value (COMMA STRING COLON value)*)? CLOSE
list ::= OPEN-LIST (value (COMMA value)*)? CLOSE-LIST
strings ::= OPEN-LIST (STRING (COMMA STRING)*)? CLOSE-LIST

NATURAL ::= "0" | [1-9] [0-9]{0,5}
FEED-TYPE ::= "\\"" ${choice(FEED_TYPES.map(literal))} "\\""
FEED-SOURCE-TYPE ::= "\\"" ${choice(MANIFEST_ACTION_TYPES.map(literal))} "\\""
FEED-ON-ERROR ::= "\\"" ("skip" | "use_cached" | "use_default") "\\""
feed-source ::= OPEN "\\"type\\"" COLON FEED-SOURCE-TYPE (COMMA "\\"name\\"" COLON STRING)? (COMMA "\\"action\\"" COLON STRING)? (COMMA "\\"params\\"" COLON object)? CLOSE
`;

/** A string literal of GBNF. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** Alternatives. A single one needs no parentheses. */
export function choice(ways: readonly string[]): string {
  const different = [...new Set(ways)];
  return different.length === 1 ? (different[0] ?? '') : `(${different.join(' | ')})`;
}

/** Repeats an item. `max` null means no upper bound. */
export function times(item: string, min: number, max: number | null): string {
  if (max === 0) return '""';
  if (max !== null) return min === max ? `${item}{${min}}` : `${item}{${min},${max}}`;
  return min === 0 ? `${item}*` : min === 1 ? `${item}+` : `${item}{${min}} ${item}*`;
}

export class Rules {
  readonly #bodies = new Map(
    SHARED.split('\n').flatMap((line): [string, string][] => {
      const [name = '', body] = line.split(' ::= ', 2);
      return body === undefined ? [] : [[name, body]];
    }),
  );

  /** In lower case. */
  readonly #names = new Set([...this.#bodies.keys()].map((name) => name.toLowerCase()));

  /** Adds a rule under this name, or under a similar free name. @returns its name */
  add(wanted: string, body: string): string {
    const name = this.reserve(wanted);
    this.define(name, body);
    return name;
  }

  /** Adds a lexeme. Its body may refer to other lexemes only. */
  lexeme(wanted: string, body: string): string {
    const name = this.reserve(wanted).toUpperCase();
    this.define(name, body);
    return name;
  }

  /** Reserves a free name like this one, for a recursive rule. */
  reserve(wanted: string): string {
    const base =
      wanted
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^[^a-z]+|-$/g, '') || 'rule';
    let name = base;
    for (let count = 2; this.#names.has(name); count += 1) name = `${base}-${count}`;
    this.#names.add(name);
    return name;
  }

  define(name: string, body: string): void {
    this.#bodies.set(name, body);
  }

  /** Every rule that the root needs, root first: some engines reject unused rules. */
  toString(): string {
    const used = new Set(['root']);
    for (const name of used) {
      for (const [, inner] of (this.#bodies.get(name) ?? '').matchAll(RULE_NAMES)) {
        if (inner !== undefined) used.add(inner);
      }
    }
    return [...used].map((name) => `${name} ::= ${this.#bodies.get(name) ?? ''}\n`).join('');
  }
}

/** Captures rule names; skips literals and classes. */
const RULE_NAMES = /"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|([A-Za-z][A-Za-z0-9-]*)/g;
