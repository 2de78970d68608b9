/** Code fences in blocks and around the whole output (P9), and the tags in and after them. */
import { describe, expect, test } from 'vitest';
import { actionsOf, feedChunks, join, parse, textOf, warningsOf, waysToCut } from './parser-kit.ts';

/** The actions that run, and the text of all blocks. Every way of cutting the text must give the same events. */
function read(text: string): [runs: string, shown: string] {
  const whole = parse(text);
  for (const { name, chunks } of waysToCut(text, 8)) expect(join(feedChunks(chunks)), name).toEqual(whole);
  const runs = actionsOf(whole).map(({ name }) => name);
  return [runs.join(' '), (['text', 'thought', 'response'] as const).map((kind) => textOf(whole, kind)).join('')];
}

const RUN = '<action name="run"/>';
const QUOTED = '<action name="quoted"/>';
const line = (mark: string, chars: number): string => mark + 'x'.repeat(chars - mark.length);

describe('[P9] a fence around the whole output', () => {
  test.each<[what: string, text: string, shown: string]>([
    ['is dropped', `\`\`\`\n${RUN}\n\`\`\`\n`, ''],
    ['may have tildes, and then a backtick after them', `~~~a\`b\n${RUN}\n~~~\n`, ''],
    ['may follow a byte order mark', `\ufeff\`\`\`\n${RUN}\n\`\`\``, ''],
    ['may end with more marks', `\`\`\`\n${RUN}\n\`\`\`\`\n`, ''],
    ['may end with white space', `\`\`\`\n${RUN}\n\`\`\` `, ''],
    ['may end before a block', `\`\`\`\n${RUN}\n\`\`\` <response>b</response>`, 'b'],
    ['has at most 120 characters in its line', `${line('```', 120)}\n${RUN}`, ''],
    ['has at most 120 marks', `${'~'.repeat(120)}\n${RUN}`, ''],
    ['does not end with fewer marks', `\`\`\`\`\n${RUN}\n\`\`\`\n`, '```'],
    ['does not end with other marks', `\`\`\`\n${RUN}\n~~~\n`, '~~~'],
    ['does not end with two marks', `\`\`\`\n${RUN}\n\`\``, '``'],
    ['does not end where text follows', `\`\`\`\n${RUN}\n\`\`\` x`, '``` x'],
    ['can be followed by a fence that quotes', `\`\`\`\n${RUN}\n\`\`\`\n\`\`\`\n${QUOTED}`, `\`\`\`\n${QUOTED}`],
  ])('%s', (_what, text, shown) => {
    expect(read(text)).toEqual(['run', shown]);
  });

  test.each<[what: string, text: string, shown: string]>([
    ['two marks', `\`\`x\n${RUN}`, '``x'],
    ['a backtick after backticks', `\`\`\`a\`b\n${RUN}`, '```a`b'],
    ['a tag in the line', `\`\`\`js ${RUN}`, '```js'],
    ['a fence inside the line', `\`\` \`\`\`js\n${RUN}`, '`` ```js'],
    ['121 characters', `${line('```', 121)}\n${RUN}`, line('```', 121)],
    ['121 tildes', `${'~'.repeat(121)}\n${RUN}`, '~'.repeat(121)],
    ['121 backticks', `${'`'.repeat(121)}\n${RUN}`, '`'.repeat(121)],
    ['marks after a block', `<thought>a</thought>\`\`\`\n${RUN}`, '```a'],
    ['a byte order mark inside the text', `a\n\ufeff\`\`\`\n${RUN}`, 'a\n\ufeff```'],
  ])('is not: %s', (_what, text, shown) => {
    expect(read(text)).toEqual(['run', shown]);
  });

  test('text that only looked like its line begins where the line does', () => {
    for (const text of ['``x', '```a`b', ' \n ``` <b>', '\ufeff``x']) {
      for (const { name, chunks } of waysToCut(text, 5)) {
        const [started] = feedChunks(chunks);
        expect(started, name).toEqual({ type: 'text_started', offset: text.indexOf('`') });
      }
    }
  });
});

describe('[P9] a fence in a block', () => {
  test.each<[what: string, body: string]>([
    ['other marks do not end it', `\`\`\`\na\n~~~\n${QUOTED}\n\`\`\`\n${RUN}`],
    ['marks with text after them do not end it', `\`\`\`\na\n\`\`\` b\n${QUOTED}\n\`\`\`\n${RUN}`],
    ['white space after its end', `\`\`\`\n${QUOTED}\n\`\`\`  \n${RUN}`],
    ['white space before its marks', `  \`\`\`\n${QUOTED}\n\t\`\`\`\n${RUN}`],
    ['fewer marks do not end it', `~~~~\n${QUOTED}\n~~~\n${QUOTED}\n~~~~\n${RUN}`],
    ['more marks end it', `~~~~~\n${QUOTED}\n~~~~~~ \n${RUN}`],
    ['a dollar sign after its marks', `\`\`\` $a\n${QUOTED}\n\`\`\`\n${RUN}`],
    ['a backtick after tildes', `~~~ a\`\n${QUOTED}\n~~~\n${RUN}`],
    ['a tag after backticks is not in a fence', `\`\`\`js ${RUN}\n`],
    ['two marks are not a fence', `\`\`\n${RUN}\n\`\``],
    ['a backtick after backticks is not a fence', `\`\`\` a\`\n${RUN}`],
  ])('%s', (_what, body) => {
    const [runs, shown] = read(`<thought>a\n${body}</thought>`);
    expect(runs).toBe('run');
    expect(shown.replaceAll(/\s/g, '')).toBe(`a${body}`.replace(RUN, '').replaceAll(/\s/g, ''));
  });

  test('after the end of a fence only the end of the block may follow in the line', () => {
    expect(read(`<thought>\n\`\`\`\na\n\`\`\`</thought>${RUN}`)).toEqual(['run', '```\na\n```']);
    expect(read(`<thought>\n\`\`\`\na\n\`\`\` b</thought>${QUOTED}\n</thought>${RUN}`)).toEqual([
      'run',
      `\`\`\`\na\n\`\`\` b</thought>${QUOTED}`,
    ]);
  });

  test('a closing tag that is not first in its line is quoted', () => {
    expect(read(`<thought>\n\`\`\`\n<b></thought> x\n</thought>${RUN}`)).toEqual(['run', '```\n<b></thought> x']);
  });

  test.each([
    ['1. ```sh\n   npm i\n   ```\nDone.', 'run'],
    ['> 12) - ~~~\n> x\n~~~', 'run'],
    ['- ```\n  </response>\n  ```\n', 'run'],
    ['* + ```\n```', 'run'],
    ['1.\n2.\n- \n-', 'run'],
    ['12. text <b> 3 > 2 - 1', 'run'],
    // Not marks of a list: the fence at the start of the last line is open at the end of the text.
    ['-~~~\n~~~\n', ''],
    ['1~~~\n~~~\n', ''],
    ['1.a ~~~\n~~~\n', ''],
  ])('in a response it may begin after list and quotation marks: %j', (text, expected) => {
    const [runs, shown] = read(`<response>${text}</response>${RUN}`);
    expect(runs).toBe(expected);
    expect(shown.startsWith(text.trim())).toBe(true);
  });

  test('in a thought it may not', () => {
    expect(read(`<thought>\n- \`\`\`\n${RUN}</thought>`)[0]).toBe('run');
  });

  test('[P12] a reference after the marks of a response is one', () => {
    expect(parse('<response>\n``` $a\n$b</response>').filter(({ type }) => type === 'response_reference')).toHaveLength(
      2,
    );
  });

  test('a closing tag that is text leaves the rest of its line as it was', () => {
    expect(read(`a </thought\n\`\`\`\n${QUOTED}\n\`\`\`\n${RUN}`)).toEqual([
      'run',
      `a </thought\n\`\`\`\n${QUOTED}\n\`\`\``,
    ]);
    expect(read(`a </thought \`\`\`\n${RUN}`)).toEqual(['run', 'a </thought ```']);
  });
});

describe('[P9] actions in <think>', () => {
  const draftsIn = (text: string): string[] => {
    expect(read(text)[0]).toBe('');
    return warningsOf(parse(text));
  };
  test('are drafts, which is said once', () => {
    expect(draftsIn(`<think>${QUOTED}${QUOTED}</think>`)).toEqual(['action_in_reasoning']);
    expect(draftsIn(`<thinking>a ${QUOTED}</thinking><think>${QUOTED}</think>`)).toEqual(['action_in_reasoning']);
  });
  test('a closing tag, or one in a fence, is not an action', () => {
    expect(draftsIn('<think>a </action> b</think>')).toEqual([]);
    expect(draftsIn(`<think>\n\`\`\`\n${QUOTED}\n\`\`\`\n</think>`)).toEqual([]);
  });
  test('an action after it runs', () => {
    expect(read(`<think>a</thought>${RUN}`)).toEqual(['run', 'a']);
  });
});

describe('[P10] final', () => {
  test.each([
    ['', null],
    ['final', true],
    ['final="true"', true],
    ["final='false'", false],
    ['final=False', false],
    ['FINAL=" TRUE "', true],
    ['final="yes"', true],
    ['final="1"', true],
    ['final="final"', true],
    ['final="no"', false],
    ['final="0"', false],
    ['final=" Auto "', null],
  ])('<response %s> is %j', (attribute, final) => {
    expect(parse(`<response ${attribute}>a</response>`)[0]).toEqual({ type: 'response_started', offset: 0, final });
  });
});
