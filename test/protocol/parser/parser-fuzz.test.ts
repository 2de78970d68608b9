import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import {
  actionsOf,
  characters,
  cutAtRandom,
  DEFAULTS,
  feedChunks,
  join,
  lines,
  parse,
  rejectionsOf,
} from './parser-kit.ts';
import { documents } from '../documents.ts';

/** A failure found here is kept as a seed; `CORTEX_FUZZ_RUNS` sets a longer search. */
const RUNS = Number(process.env['CORTEX_FUZZ_RUNS'] ?? 150);

const FRAGMENTS = [
  '<thought>§</thought>§<think>§</thinking>§<response>§<response final="true">§</response>§<action name="x">',
  '<action name="y" id="i">§<action type="python">§<action §<action/>§<action name=z/>§</action>§</action >',
  '</thought\n>§</act§<§</§>§/>§<results>§</results>§<system>§<context_feed id="a">§{§}§[§]§{"a":1}§{"a":"§"§\'§\\',
  '\\"§,§:§"b":§1§true§None§/*§*/§//§```§~~~§```json\n§\n```\n§`§``§`</response>`§` §\n§\r\n§ §  §\t§$§$$§$a§${a}',
  '${§$a.b§[0]§[123456789§.§a§text§é§漢字§\u{1F600}§\ud83d§\ude00§\u0000§ id="q"§ depends_on=["a","b"§=§final§&quot;',
  '<b>§List<int>§<action_result§\uFEFF',
].flatMap((line) => line.split('§'));
const soup = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 60 }).map((pieces) => pieces.join(''));
const options = fc.record({
  json: fc.constantFrom('repair' as const, 'strict' as const),
  actInReasoning: fc.boolean(),
});

/** Blocks and actions open and close in turn; an action runs only if its closing tag is in the text. */
function expectWellFormed(text: string, events: readonly ProtocolEvent[]): void {
  let open: string | null = null;
  let opened = 0;
  const ordinals: number[] = [];
  for (const event of events) {
    const [, kind, step] = /^(thought|text|response)(?:_(started|completed|reference))?$/.exec(event.type) ?? [];
    if (kind !== undefined) {
      if (step === 'started') {
        expect(open).toBeNull();
        open = kind;
      } else {
        expect(open).toBe(kind);
        if (step === 'completed') open = null;
      }
    }
    if ('delta' in event) expect(event.delta).not.toBe('');
    if (event.type === 'action_opened') opened += 1;
    if (event.type === 'action_declared') {
      const { span, ordinal } = event.action;
      const source = text.slice(span.start, span.end).toLowerCase();
      expect(source.startsWith('<action')).toBe(true);
      expect(/(?:<\/action\s*|\/)>$/.test(source)).toBe(true);
      ordinals.push(ordinal);
    }
    if (event.type === 'action_rejected') {
      const { ordinal, code, line, column } = event.rejection;
      ordinals.push(ordinal);
      // An error in the body has its own position.
      if (code !== 'invalid_json' && code !== 'too_deep') {
        const written = text.split('\n').at(line - 1) ?? '';
        expect(written.slice(column - 1).toLowerCase()).toMatch(/^<action/);
      }
    }
  }
  expect(open).toBeNull();
  expect(ordinals).toEqual([...ordinals].toSorted((a, b) => a - b));
  expect(new Set(ordinals).size).toBe(ordinals.length);
  expect(opened).toBeGreaterThanOrEqual(actionsOf(events).length);
}

describe('random documents', () => {
  test('[P1] [P6] [P9] [P12] give the events that they were generated from', () => {
    fc.assert(
      fc.property(documents, ({ text, events }) => {
        expect(lines(parse(text))).toEqual(events);
      }),
      { numRuns: RUNS },
    );
  });
  test('[P3] give the same events for every cut', () => {
    fc.assert(
      fc.property(documents, fc.nat(1000), ({ text }, seed) => {
        const whole = parse(text);
        expect(join(feedChunks(characters(text)))).toEqual(whole);
        expect(join(feedChunks(cutAtRandom(text, seed)))).toEqual(whole);
      }),
      { numRuns: RUNS },
    );
  });
  test('[P15] cut off at any position, keep exactly the actions declared before', () => {
    fc.assert(
      fc.property(documents, ({ text }) => {
        const whole = actionsOf(parse(text));
        for (let end = 0; end < text.length; end += 1) {
          expect(actionsOf(parse(text.slice(0, end)))).toEqual(whole.filter(({ span }) => span.end <= end));
        }
      }),
      { numRuns: Math.ceil(RUNS / 10) },
    );
  });
  test('with an error never throw, and stay well formed', () => {
    const mutation = fc.record({ at: fc.nat(2000), remove: fc.nat(6), insert: fc.constantFrom('', ...FRAGMENTS) });
    fc.assert(
      fc.property(
        documents,
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        fc.nat(1000),
        ({ text }, mutations, seed) => {
          let broken = text;
          for (const { at, remove, insert } of mutations) {
            const place = at % (broken.length + 1);
            broken = broken.slice(0, place) + insert + broken.slice(place + remove);
          }
          const whole = parse(broken);
          expectWellFormed(broken, whole);
          expect(join(feedChunks(cutAtRandom(broken, seed, 9)))).toEqual(whole);
        },
      ),
      { numRuns: RUNS * 2 },
    );
  });
});

describe('fragments of the protocol in any order', () => {
  test('[P3] never throw, give the same events for every cut, and stay well formed', () => {
    fc.assert(
      fc.property(soup, options, fc.nat(1000), (text, given, seed) => {
        const whole = parse(text, given);
        expectWellFormed(text, whole);
        expect(join(feedChunks(characters(text), given))).toEqual(whole);
        expect(join(feedChunks(cutAtRandom(text, seed, 7), given))).toEqual(whole);
      }),
      { numRuns: RUNS * 5 },
    );
  });
  test('[P4] [P15] events of a prefix are never revoked', () => {
    fc.assert(
      fc.property(soup, fc.nat(2000), (text, place) => {
        const end = place % (text.length + 1);
        const parser = createParser(DEFAULTS);
        const before = [...parser.feed(text.slice(0, end))];
        const all = [...before, ...parser.feed(text.slice(end)), ...parser.end()];
        expect(actionsOf(parse(text.slice(0, end)))).toEqual(actionsOf(before));
        expect(join(all).slice(0, Math.max(0, join(before).length - 1))).toEqual(join(before).slice(0, -1));
      }),
      { numRuns: RUNS * 2 },
    );
  });
});

/** Counts the characters that string operations read while `body` runs. */
function countCharacters(body: () => void): number {
  const text = String.prototype;
  const { charCodeAt, indexOf, lastIndexOf, slice, toLowerCase } = text;
  const { parse: parseJson } = JSON;
  let looked = 0;
  text.charCodeAt = function (this: string, ...at) {
    looked += 1;
    return charCodeAt.apply(this, at);
  };
  text.indexOf = function (this: string, search, from = 0) {
    const found = indexOf.call(this, search, from);
    looked += (found === -1 ? this.length : found + 1) - Math.min(from, this.length);
    return found;
  };
  text.lastIndexOf = function (this: string, ...search) {
    const found = lastIndexOf.apply(this, search);
    looked += this.length - Math.max(0, found);
    return found;
  };
  text.slice = function (this: string, ...range) {
    const part = slice.apply(this, range);
    looked += part.length;
    return part;
  };
  text.toLowerCase = function (this: string) {
    looked += this.length;
    return toLowerCase.call(this);
  };
  JSON.parse = function (source: string, ...rest) {
    looked += source.length;
    return parseJson.call(JSON, source, ...rest);
  } as typeof parseJson;
  try {
    body();
  } finally {
    Object.assign(text, { charCodeAt, indexOf, lastIndexOf, slice, toLowerCase });
    JSON.parse = parseJson;
  }
  return looked;
}

describe('[P3] linear time: characters read per character of text, fed one at a time and whole', () => {
  const size = 50_000;
  const fill = (piece: string, before = '', after = ''): string =>
    before + piece.repeat(Math.floor(size / piece.length)) + after;
  test.each<[string, string]>([
    ['spaces', fill(' ')],
    ['spaces in a thought', fill(' ', '<thought>a', 'b</thought>')],
    ['spaces in a response', fill(' \n', '<response>a', '</response>')],
    ['spaces in an opening tag', fill(' ', '<action name="x"', '>{}</action>')],
    ['spaces in a closing tag', fill(' ', '<thought>a</thought', '>')],
    ['spaces in a closing tag of an action', fill(' ', '<action name="x">{}</action', '>')],
    ['<action  again and again', fill('<action ')],
    ['<action a=" again and again', fill('<action a="')],
    ['<action a="> again and again', fill('<action a="> ')],
    ['<action> again and again', fill('<action name="x">')],
    ['</action> again and again', fill('</action>')],
    ['< again and again', fill('<')],
    ['<t again and again', fill('<thought')],
    ['</ again and again', fill('</')],
    ['escaped quotes', fill('\\"', '<action name="x">{"a":"', '"}</action>')],
    ['escaped quotes and closing tags', fill('\\"</action>', '<action name="x">{"a":"', '"}</action>')],
    ['backslashes', fill('\\\\', '<action name="x">{"a":"', '"}</action>')],
    ['opening tags in a string', fill('<action name=\\"x\\">', '<action name="x">{"a":"', '"}</action>')],
    ['closing tags in a string', fill('</thought >', '<action name="x">{"a":"', '"}</action>')],
    ['closing tags in a comment', fill('</action>', '<action name="x">{/*', '*/}</action>')],
    ['a long string', fill('a', '<action name="x">{"a":"', '"}</action>')],
    ['an endless number', fill('1', '<action name="x">{"a":', '}</action>')],
    ['numbers with too many digits', fill('12345678901234567890,', '<action name="x">{"a":[', '1]}</action>')],
    ['plain attributes', fill(' a="b"', '<action name="x"', '>{}</action>')],
    ['actions with one id', fill('<action name="x" id="a">{"a":12345678901234567890}</action>')],
    ['lone surrogates', fill('\ud83d', '<response>', '</response>')],
    ['malformed bodies', fill('<action name="x">{"a": b"}</action>')],
    ['malformed bodies with an id', fill('<action name="x" id="a">{"a": \'b\'}</action>')],
    ['an unclosed body', fill('{"a":[', '<action name="x">')],
    ['brackets', fill('[', '<action name="x">{"a":', '</action>')],
    ['dollars', fill('$', '<response>')],
    ['names', fill('$a.b[0].c', '<response>')],
    ['an endless name', fill('a', '<response>$')],
    ['an endless path', fill('.a', '<response>$a')],
    ['braces', fill('${a', '<response>')],
    ['indices', fill('$a[1', '<response>')],
    ['backticks', fill('`')],
    ['fences', fill('```\n')],
    ['fences in a thought', fill('```\n</thought', '<thought>\n')],
    ['lines of backticks and spaces', fill('` `` ```\n', '<response>')],
    ['runs of backticks', fill('` ', '<response>``')],
    ['runs of different lengths', Array.from({ length: 300 }, (_, at) => '`'.repeat(at)).join(' ')],
    ['closing tags in inline code', fill('`</response>` ', '<response>')],
    ['closing tags in code that may be inline', fill('</response><response>`` ` ')],
    [
      'closing tags after runs of different lengths',
      Array.from({ length: 1_500 }, (_, at) => `<response>${'`'.repeat((at % 30) + 1)}</response>`).join(''),
    ],
    ['forged blocks', fill('<results>a')],
    ['tags in a forged block', fill('<action name="x">{}</action></system >', '<results>')],
    ['attributes', fill('a=1 ', '<action ', '>{}</action>')],
    ['unclosed attributes', fill('a=[', '<action ')],
    ['line feeds', fill('\n')],
    ['other tags', fill('<b>')],
    ['almost tags', fill('<actions>')],
    ['stray closing tags', fill('</thought>')],
    ['thoughts', fill('<thought>')],
  ])('%s', (_what, text) => {
    for (const chunks of [characters(text), [text], cutAtRandom(text, 1, 64)]) {
      const looked = countCharacters(() => {
        const parser = createParser(DEFAULTS);
        for (const chunk of chunks) parser.feed(chunk);
        parser.end();
      });
      expect(looked / text.length).toBeLessThan(60);
    }
  });
  test('the repairs of a whole generation are bounded', () => {
    const body = `{"a":"${'"x'.repeat(limits.repairChars / 4)}"}`;
    const events = feedChunks([`<action name="x">${body}</action>`.repeat(60)]);
    expect(actionsOf(events).length).toBeLessThanOrEqual(limits.repairCharsPerGeneration / body.length);
  });
});

/** If a field were read in quadratic time, this would take hours. */
test.each([
  ['timeout', '5', ' '],
  ['timeout', '5', '\n'],
  ['cache_ttl', '5', ' '],
  ['retry_delay_seconds', '5', ' '],
  ['depends_on', 'a', "'"],
  ['depends_on', 'a', '"'],
  ['depends_on', '', ' ,'],
])('[P3] a %s of %j, half a million times %j and a letter is read once', (field, begins, piece) => {
  const body = { name: 'echo', [field]: `${begins}${piece.repeat(500_000 / piece.length)}x` };
  const events = parse(`<action id="a">${JSON.stringify(body)}</action>`);
  expect(events.filter(({ type }) => /declared|rejected/.test(type))).toHaveLength(1);
});

/** As many as fit in four generations: minutes if each were compared with all previous ones. */
test.each([
  ['depends_on as a string', '{"name":"x","depends_on":"', ',', 160_000, 'z"}'],
  ['references', '{"name":"x","parameters":{"a":"', ' $', 140_000, ' "}}'],
])('[P3] %s are read in linear time', (_what, begins, separator, count, ends) => {
  const names = Array.from({ length: count }, (_, index) => `a${index.toString(36)}`);
  const text = `<action id="a">${begins}${separator}${names.join(separator)}${ends}</action>`;
  for (let generation = 0; generation < 4; generation += 1) {
    const [action] = actionsOf(feedChunks([text]));
    expect((action?.dependsOn ?? action?.references)?.slice(0, count)).toHaveLength(count);
  }
});
test('[P3] the name of an attribute is read in linear time, whatever characters it contains', () => {
  const tag = `<action a${'-'.repeat(8_000)}a="1">{}</action>`;
  for (let generation = 0; generation < 4; generation += 1) {
    const parser = createParser({ ...DEFAULTS, actionsLeft: 1 });
    const events = parser.feed(tag.repeat(500));
    expect(rejectionsOf(events).map(({ code }) => code)).toEqual(['invalid_action', 'too_many_actions']);
  }
});
