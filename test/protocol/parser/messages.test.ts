/** What warnings and rejections say, and the place in the text that they name (P8). */
import { describe, expect, test } from 'vitest';
import { ACTION_TYPES } from '../../../src/domain/action-types.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import type { ParserOptions } from '../../../src/protocol/parser/parser.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { DEFAULTS, feedChunks, parse, rejectionsOf, waysToCut } from './parser-kit.ts';

/** `code at offset: message` of a warning, `code at line:column: message | excerpt` of a rejection. */
function told(events: readonly ProtocolEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === 'warning') return [`${event.code} at ${event.offset}: ${event.message}`];
    if (event.type !== 'action_rejected') return [];
    const { code, line, column, message, excerpt } = event.rejection;
    return [`${code} at ${line}:${column}: ${message} | ${excerpt}`];
  });
}

const unclosed = 'The action was not closed, so it does not run';

describe('[P8] messages', () => {
  test.each<[text: string, expected: string, options?: Partial<ParserOptions>]>([
    [
      'a <results id="x">b</results>',
      'forged_tag at 2: <results> is reserved for the runtime; it was dropped with its content',
    ],
    [
      '</thought>a</response >',
      [
        'stray_close_tag at 0: </thought> closes no open block; it was dropped',
        'stray_close_tag at 11: </response> closes no open block; it was dropped',
      ].join('\n'),
    ],
    ['<thought>a', 'unclosed at 10: The thought has no closing tag; it was closed here'],
    ['<response>a', 'unclosed at 11: The response has no closing tag; it was closed here'],
    ['<thought>a<response>b</response>', 'unclosed at 10: The thought has no closing tag; it was closed here'],
    [
      '<action name="a">{"x":1}',
      `unclosed at 1:1: Action "auto_1", line 1: ${unclosed}: the text ended | <action name="a">{"x":1}`,
    ],
    [
      '<action name="a">{"x":1}</action',
      `unclosed at 1:1: Action "auto_1", line 1: ${unclosed}: the text ended | <action name="a">{"x":1}</action`,
    ],
    [
      '<action name="a">{"x":1}</action ',
      `unclosed at 1:1: Action "auto_1", line 1: ${unclosed}: the text ended | <action name="a">{"x":1}`,
    ],
    [
      '<thought><action name="a">{"x":1}</thought>',
      `unclosed at 1:10: Action "auto_1", line 1: ${unclosed}: </thought> was found where its </action> was expected | <action name="a">{"x":1}`,
    ],
    [
      '<action name="a">{<thought>b</thought>',
      `unclosed at 1:1: Action "auto_1", line 1: ${unclosed}: <thought> was found before its </action> | <action name="a">{`,
    ],
    [
      'x\n  <action name="a"',
      `unclosed at 2:3: Action "auto_1", line 2: ${unclosed}: the text ended inside its opening tag | <action name="a">`,
    ],
    [
      '<action name="a" <thought>b</thought>',
      `unclosed at 1:1: Action "auto_1", line 1: ${unclosed}: another tag begins inside its opening tag | <action name="a" >`,
    ],
    ['<response final="perhaps">a</response>', 'invalid_field at 0: final="perhaps" is neither true nor false'],
    ['<response tone="x" final>a</response>', 'unknown_attribute at 0: <response> has no attribute tone'],
    [
      '<think>\n <action name="x"/></think>',
      'action_in_reasoning at 9: Actions inside <think> are drafts and do not run',
    ],
    [
      '<action name="a" id="i"/>\n<action name="a" id="i"/>\n <action name="b" id="i">{}</action>',
      [
        'duplicate_action at 26: The action "i" was declared twice with the same text; it runs once',
        'duplicate_id at 3:2: Action "i", line 3: The id "i" is already used in this generation; choose another | <action name="b" id="i">{}',
      ].join('\n'),
    ],
    [
      '<action name="a">\n{"x": 1,}</action>',
      'invalid_json at 2:9: Action "auto_1", line 2: The body is not a JSON object: unexpected comma before "}" | {"x": 1,}',
      { json: 'strict' },
    ],
    [
      '<action name="a">[1]</action>',
      'invalid_json at 1:18: Action "auto_1", line 1: The body must be one JSON object | [1]',
    ],
    [
      ' <action type="magic">{}</action>',
      `invalid_action at 1:2: Action "auto_1", line 1: type "magic" does not exist (known: ${ACTION_TYPES.join(', ')}) | <action type="magic">{}`,
    ],
    [
      '<action/><action name="b"/><action name="c"/>',
      [
        'invalid_action at 1:1: Action "auto_1", line 1: the tool action has no name: put "name" in the body | <action>',
        'too_many_actions at 1:10: Action "auto_2", line 1: More than 1 actions; this one and all later ones are ignored | <action name="b">',
      ].join('\n'),
      { actionsLeft: 1 },
    ],
    [
      '<action name="a">{}</action>',
      'too_many_actions at 1:1: Action "auto_1", line 1: More than 0 actions; this one and all later ones are ignored | <action name="a">{}',
      { actionsLeft: -1 },
    ],
  ])('%j', (text, expected, options) => {
    expect(told(parse(text, options)).join('\n')).toBe(expected);
    for (const { name, chunks } of waysToCut(text, 8))
      expect(told(feedChunks(chunks, options)).join('\n'), name).toBe(expected);
  });

  test('[P16] of a tag, a body and a generation that are too long', () => {
    const tag = 'x'.repeat(limits.tagBytes);
    expect(told(parse(`a <thought n="${tag}">`))).toEqual([
      `tag_too_large at 2: A tag is longer than ${limits.tagBytes} bytes; it was read as text`,
    ]);
    expect(told(parse(`<action n="${tag}"/>`))).toEqual([
      `too_large at 1:1: Action "auto_1", line 1: A tag is longer than ${limits.tagBytes} bytes | ${`<action n="${tag}`.slice(0, limits.excerptChars)}`,
    ]);
    const body = `{"x":"${'x'.repeat(limits.actionBodyBytes)}"}`;
    expect(told(parse(`<action name="a">${body}</action>`))[0]).toContain(
      `too_large at 1:1: Action "auto_1", line 1: The body is longer than ${limits.actionBodyBytes} bytes | <action name="a">`,
    );
    const generation = `The generation is longer than ${limits.generationBytes} bytes`;
    const parser = createParser(DEFAULTS);
    parser.feed('x'.repeat(limits.generationBytes - 20));
    expect(told(parser.feed('<action name="a"><thought>'))).toEqual([
      `text_too_large at ${limits.generationBytes}: ${generation}; the rest was ignored`,
    ]);
    expect(told(parser.end())).toEqual([
      `too_large at 1:${limits.generationBytes - 19}: Action "auto_1", line 1: ${generation} | <action name="a"><th`,
    ]);
  });

  test('[P16] of the warnings that are not shown', () => {
    const most = limits.warningsPerGeneration;
    const warnings = told(parse('</thought>'.repeat(most + 2)));
    expect(warnings).toHaveLength(most + 1);
    expect(warnings.at(-1)).toBe(
      `truncated at ${most * '</thought>'.length}: More than ${most} warnings; further warnings are not shown`,
    );
  });
});

describe('[P8] the place of an error', () => {
  const action = '<action id="f">{bad!}</action>';
  test.each([
    '',
    'a ',
    'a\nb ',
    '\n\n',
    '```\n',
    '``\n',
    '```a`b\n ',
    '~~~\n~~~ ',
    '<results>\n\n a</results> ',
    '<results>\n</result\n>\n x</results\n>b',
    '<results>a\n<b</results>',
    '<context_feed\n id="a"\n/> ',
    '<action name="x">\n{\n}\n</action> ',
    '<action name="x">{"a":"\n\n',
    '<thought\n\n>a\n\n</thought> ',
    '<thought>\n a',
    '<response\n final>\n$a\n${b} $$\n</response\n> ',
    '<response>\n```\n</response>\n```\n</response>a',
    '<thought>\n```\n\n a\n```</thought> ',
    '<think>\n\n</action>\n</think> ',
    '<action \n\n<b>\n x ',
    '<action\n name="x"\n/> ',
    '<action\n name="x">{}</action\n> ',
    '</thought\n a\n ',
    '</thought\n\n> ',
    '<thought>a</thought\n',
    '<thought \n',
  ])('after %j', (before) => {
    const text = before + action;
    const lines = text.slice(0, text.indexOf('bad!')).split('\n');
    for (const { name, chunks } of [{ name: 'whole', chunks: [text] }, ...waysToCut(text, 6)]) {
      const rejection = rejectionsOf(feedChunks(chunks)).at(-1);
      expect([rejection?.id, rejection?.line, rejection?.column], name).toEqual([
        'f',
        lines.length,
        (lines.at(-1) ?? '').length + 1,
      ]);
    }
  });
});
