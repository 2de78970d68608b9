/**
 * The text of thoughts and responses as a regular language: everything that the parser reads as text
 * of one block, and no tag of the protocol (P1, P2, P9).
 *
 * Two things make it more than "no `<`": a `<` is text unless a name of the closed set follows, in
 * either case and up to what ends a tag's name; and lines that open a code fence hide what follows
 * them, so that every fence which is opened is closed before the block's next tag.
 */
import { NOTHING, choice, many, noneOf, oneOf, optional, repeat, sequence, text } from './model.ts';
import type { Expression, RuleBook } from './model.ts';

/** Every tag that means something outside a response. */
const ALL_TAGS = [
  'thought',
  'think',
  'thinking',
  'action',
  'response',
  'context_feed',
  'action_result',
  'results',
  'system',
];

/** White space beside blank, tab and line feed: before a fence it would count as such, and models do not need it. */
const ODD_SPACE = '\u000B-\u000D';
const FENCES = ['```', '~~~'] as const;

export interface BlockText {
  /** Text from the start of the block, where a line begins. */
  readonly fromStart: Expression;
  /** Text behind an action, in the middle of a line. */
  readonly further: Expression;
}

/** Text inside `<thought>`, between its actions. */
export function thoughtText(book: RuleBook): BlockText {
  return blockText(book, 'thought', ALL_TAGS, true);
}

/** Text inside `<response>`, where only the closing tag is one (P9). */
export function responseText(book: RuleBook): BlockText {
  return blockText(book, 'response', ['response'], false);
}

/** @param opening whether the opening tags count as well as the closing ones */
function blockText(book: RuleBook, block: string, tags: readonly string[], opening: boolean): BlockText {
  const root = trieOf(tags);
  const slash = text('/');
  // the beginning of a name with the character by which it is none
  const stray = book.lexeme(`${block}-stray-name`, strayed(root));
  const afterLess = opening ? stray : noneOf(`/<\n${ODD_SPACE}`);
  const noTag = book.lexeme(
    `${block}-no-tag`,
    sequence(text('<'), choice(afterLess, sequence(slash, choice(stray, slash)))),
  );
  // the beginning of a name of which the next character decides that it is none: another `<` or the line's end
  const begin = optional(slash, begun(root));
  const cutTag = book.lexeme(
    `${block}-cut-tag`,
    sequence(text('<'), opening ? sequence(optional(slash), begun(root)) : begin),
  );
  const mark = sequence(many(cutTag), noTag);
  const character = noneOf(`<\n${ODD_SPACE}`);
  const rest = book.lexeme(`${block}-rest-of-line`, sequence(many(choice(character, mark)), many(cutTag)));
  const line = book.lexeme(`${block}-line`, lineWithoutFence(mark, cutTag, rest));
  const blank = many(oneOf('\t '));
  const fences = FENCES.map((fence) =>
    sequence(
      sequence(blank, text(fence), many(noneOf(`<$\`~\n${ODD_SPACE}`)), text('\n')),
      many(sequence(line, text('\n'))),
      sequence(blank, text(fence), blank),
    ),
  );
  const part = book.lexeme(`${block}-lines`, choice(line, ...fences));
  const lines = sequence(part, many(sequence(text('\n'), part)));
  return { fromStart: lines, further: sequence(rest, optional(text('\n'), lines)) };
}

/** A line that does not begin with three backticks or tildes. */
function lineWithoutFence(mark: Expression, cutTag: Expression, rest: Expression): Expression {
  const plain = sequence(choice(noneOf(`<\n\`~\t ${ODD_SPACE}`), mark), rest);
  const shortRun = choice(repeat(text('`'), 1, 2), repeat(text('~'), 1, 2));
  const afterRun = sequence(choice(noneOf(`<\n\`~${ODD_SPACE}`), mark), rest);
  const cut = many(cutTag);
  return sequence(many(oneOf('\t ')), choice(plain, sequence(shortRun, choice(afterRun, cut)), cut));
}

interface TrieNode {
  readonly next: Map<string, TrieNode>;
  /** The way to here spells a whole name. */
  isName: boolean;
}

/** The inside of a JSON string without escapes that spells none of these names and is not empty. */
export function nameOtherThan(names: readonly string[]): Expression {
  const character = (other: readonly string[]): Expression => {
    // a `-` in the middle of a class would make a range
    const dash = other.includes('-') ? '-' : '';
    return noneOf(`"\\\u0000-\u001F${other.filter((letter) => letter !== '-').join('')}${dash}`);
  };
  const from = (node: TrieNode, isStart: boolean): Expression => {
    const ways = [...node.next].map(([letter, child]) => sequence(text(letter), from(child, false)));
    const all = choice(...ways, sequence(character([...node.next.keys()]), many(character([]))));
    return isStart || node.isName ? all : optional(all);
  };
  // what takes an escape to spell cannot come about without one
  return from(trieOf(names.filter((name) => JSON.stringify(name) === `"${name}"`)), true);
}

function trieOf(names: readonly string[]): TrieNode {
  const root: TrieNode = { next: new Map(), isName: false };
  for (const name of names) {
    let node = root;
    for (const character of name) {
      const next: TrieNode = node.next.get(character) ?? { next: new Map(), isName: false };
      node.next.set(character, next);
      node = next;
    }
    node.isName = true;
  }
  return root;
}

/** The way into the trie and off it again, by a character that neither goes on nor ends a name. */
function strayed(node: TrieNode, isRoot = true): Expression {
  const letters = [...node.next.keys()];
  const onward = letters.map((letter) => eitherCase(letter)).join('');
  const off = noneOf(`<\n${ODD_SPACE}${onward}${node.isName || isRoot ? '/' : ''}${node.isName ? '> \t' : ''}`);
  const ways = [...node.next].map(([letter, child]) => sequence(oneOf(eitherCase(letter)), strayed(child, false)));
  return choice(...ways, off);
}

/** The way into the trie up to any place that spells no whole name. */
function begun(node: TrieNode): Expression {
  const ways = [...node.next].flatMap(([letter, child]) => {
    const isDeadEnd = child.isName && child.next.size === 0;
    return isDeadEnd ? [] : [sequence(oneOf(eitherCase(letter)), begun(child))];
  });
  if (ways.length === 0) return NOTHING;
  return node.isName ? choice(...ways) : optional(choice(...ways));
}

function eitherCase(letter: string): string {
  const upper = letter.toUpperCase();
  return upper === letter ? letter : letter + upper;
}
