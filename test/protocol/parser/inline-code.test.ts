/** Inline code in responses (P9): which `</response>` ends the response, and when that is known. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import {
  actionsOf,
  characters,
  DEFAULTS,
  feedChunks,
  join,
  lines,
  parse,
  rejectionsOf,
  textOf,
  waysToCut,
} from './parser-kit.ts';

const RUN = '<action name="run"/>';

/** The text of the first response and what follows it, one line per event. Every way of cutting gives the same. */
function read(text: string): readonly [response: string, after: string] {
  const whole = parse(text);
  for (const { name, chunks } of waysToCut(text, 12)) expect(join(feedChunks(chunks)), name).toEqual(whole);
  const end = whole.findIndex(({ type }) => type === 'response_completed');
  return [textOf(whole.slice(0, end), 'response'), lines(whole.slice(end)).join('\n').trim()];
}

const ENDS = '}\nopen tool run sync\naction auto_1 tool:run sync {}';
const rest = 'x'.repeat(limits.inlineCodeChars);

describe('[P9] a </response> in inline code of a response is text', () => {
  test.each<[what: string, answer: string]>([
    ['the tag alone', 'Close it with `</response>`.'],
    ['with white space before its >', 'Close it with `</response >`.'],
    ['in upper case', 'Close it with `</RESPONSE>`.'],
    ['a whole document', 'Write `<response>Hi</response><action name="x">{"a": 1}</action> <thought>` and wait.'],
    ['several in a span', '`</response></response>` twice.'],
    ['several spans', '`a` and `</response>` and `</response>` and `b`'],
    ['the span ends the response', 'It ends with `</response>`'],
    ['the span begins the response', '`</response>` ends it'],
    ['after a reference', 'From $a.b `</response>` and `$c </response>`'],
    ['in a list', '- `</response>`\n1. `</response>`\n> `</response>`'],
    ['longer runs', 'One ``</response>`` two ```</response>``` three'],
    ['runs that a shorter run does not close', 'A `` ` </response> ` `` b'],
    ['a run that a longer one does not close', 'A ` `` </response> `` ` b'],
    ['the run before it is never closed', 'A ``` b ` </response> ` c\nd'],
    ['another span after a closed one', 'A `b``</response>` c'],
    ['after a fence', '```\ncode\n```\n`</response>`'],
    ['after a line with an odd backtick', 'The ` key\nand `</response>`'],
    ['the longest rest of a line', `\`</response>${rest.slice(3)}\` x`],
  ])('%s', (_what, answer) => {
    expect(read(`<response>${answer}</response>${RUN}`)).toEqual([answer, ENDS]);
  });
});

describe('[P9] a </response> after a backtick that its line does not close ends the response', () => {
  test.each<[what: string, answer: string, after: string]>([
    ['the line ends', 'The ` key', '\n'],
    ['the line ends with other text', 'The ` key', ' \t\n`\n'],
    ['another run follows', 'The ` key', '`` ```\n'],
    ['the run is part of a longer one', 'The ``` key', '```` `\n'],
    ['all spans are closed', 'A `b` ``c``', '`\n'],
    ['the limit is passed', 'The ` key', `${rest}\`\n`],
    ['the run begins before the limit and ends after it', 'The ``` key', `${rest.slice(4)}\`\`\`\n`],
  ])('%s', (_what, answer, after) => {
    const [response, events] = read(`<response>${answer}</response>${after}${RUN}`);
    expect(response).toBe(answer);
    expect(events).toContain('action auto_1 tool:run sync');
  });

  test('at the end of the text', () => {
    expect(read('<response>The ` key</response>')).toEqual(['The ` key', '}']);
    expect(read('<response>The ` key</response> and `` more')).toEqual(['The ` key', '}\ntext {\n  "and `` more"\n}']);
  });

  test('[P15] an action that the cut-off line may quote is rejected', () => {
    const events = parse(`<response>The \` key</response>${RUN}<action name="a" id="a">{}</action>`);
    expect(actionsOf(events)).toEqual([]);
    expect(rejectionsOf(events).map(({ code }) => code)).toEqual(['unclosed', 'unclosed']);
    expect(actionsOf(parse(`<response>The \` key</response>${RUN}\n`))).toHaveLength(1);
  });
});

describe('[P4] text of a response is held back only for a </response> in open inline code', () => {
  const parser = (): ((text: string) => string) => {
    const stream = createParser(DEFAULTS);
    stream.feed('<response>');
    return (text) => textOf(stream.feed(text), 'response');
  };

  test('an open backtick holds nothing', () => {
    const feed = parser();
    expect(['a `b', ' c', '``', ' </b>', 'd'].map(feed)).toEqual(['a `b', ' c', '``', ' </b>', 'd']);
  });

  test('the tag and its line are emitted when the span closes', () => {
    const feed = parser();
    expect(['`', '</response>', ' a', '`', ' b'].map(feed)).toEqual(['`', '', '', '', '</response> a` b']);
  });

  test('the response ends with its line', () => {
    const stream = createParser(DEFAULTS);
    expect(lines(stream.feed('<response>a ` b</response> c'))).toEqual(['response { final=auto', '  "a ` b"']);
    expect(lines(stream.feed('\n'))).toEqual(['}', 'text {', '  "c"']);
  });
});

describe('[P9] marks inside a line of a response', () => {
  test.each<[what: string, answer: string]>([
    ['a fence that begins inside a line', 'Run ```sh\nnpm i\n```\nDone.'],
    ['a fence that begins after text of a list', '1. Run ```sh\n   npm i\n   ```\nDone.'],
    ['a fence after marks that are only mentioned', 'Use ``` for code:\n```\nnpm i\n```\nDone.'],
    ['a fence with a language after them', 'Run ```sh\nnpm i\n```\nor\n```sh\nyarn </response>\n```\nDone.'],
  ])('%s', (_what, answer) => {
    expect(read(`<response>${answer}</response>${RUN}`)).toEqual([answer, ENDS]);
  });

  test('marks that the line closes are inline code', () => {
    const answer = 'A ```b``` c\n```\n</response>\n```\nd';
    expect(read(`<response>${answer}</response>${RUN}`)).toEqual([answer, ENDS]);
  });

  test('the next response is not affected', () => {
    const second = '```\n</response>\n```\nb';
    const [, after] = read(`<response>a \`\`\`x</response>\n<response>${second}</response>`);
    expect(after).toBe(`}\nresponse { final=auto\n  ${JSON.stringify(second)}\n}`);
  });

  test('the end of a fence opens no inline code', () => {
    const answer = '```\na\n```';
    expect(read(`<response>${answer}</response>\`\`\`${RUN}`)).toEqual([
      answer,
      `}\ntext {\n  "\`\`\`"\n}${ENDS.slice(1)}`,
    ]);
  });
});

test('[P9] inline code in thoughts and bare text quotes nothing', () => {
  expect(lines(parse('<thought>a `</thought>` b</thought>'))).toEqual([
    'thought {',
    '  "a `"',
    '}',
    'text {',
    '  "` b"',
    'warning stray_close_tag',
    '}',
  ]);
  expect(lines(parse('a `<action name="run"/>` b'))).toContain('action auto_1 tool:run sync {}');
});

test('[P3] a long line of one character at a time', () => {
  const text = `<response>\`</response>${rest.slice(50)}\` ${'`'.repeat(40)}</response>\n${RUN}`;
  expect(join(feedChunks(characters(text)))).toEqual(parse(text));
});
