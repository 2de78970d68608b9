/** Text blocks as readers receive them (J4, P12, P13). */
import { describe, expect, test } from 'vitest';
import type { EventData, SessionEvent } from '../../../src/domain/event.ts';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { Segments } from '../../../src/engine/generation/segments.ts';
import { renderReference } from '../../../src/engine/run/resolve-names.ts';
import type { NameValue } from '../../../src/engine/run/results.ts';
import { eventsOf } from '../../support/events.ts';
import { logKit } from '../../support/run-log.ts';
import type { LogKit } from '../../support/run-log.ts';

interface Scene extends LogKit {
  readonly segments: Segments;
  /** The values of names; a name without a value is unknown. */
  readonly values: Map<string, NameValue>;
  refer(name: string): void;
}

const value = (json: Json): NameValue => ({ type: 'value', value: json });
const RUNNING: NameValue = { type: 'running' };

/** Blocks of a run in its first iteration. */
function scene(streamThoughts = true, hasBlockForms = true): Scene {
  const kit = logKit();
  const values = new Map<string, NameValue>();
  const segments = new Segments(kit.log, { render: renderReference, streamThoughts, hasBlockForms });
  kit.log.enterIteration(1);
  return {
    ...kit,
    segments,
    values,
    refer: (name) => segments.refer({ name, path: [], raw: `$${name}` }, () => values.get(name) ?? { type: 'unknown' }),
  };
}

/** Type, seq and data of each event. */
const told = (events: readonly SessionEvent[]): unknown[] => events.map(({ type, seq, data }) => [type, seq, data]);
const completed = async ({ sent }: Scene): Promise<readonly EventData['response_completed'][]> =>
  eventsOf(await sent(), 'response_completed').map(({ data }) => data);
const warnings = async ({ sent }: Scene): Promise<readonly EventData['warning'][]> =>
  eventsOf(await sent(), 'warning').map(({ data }) => data);

describe('[J4] a block', () => {
  test('opens and closes with an event, and each patch continues the previous one', async () => {
    const stage = scene();
    const { segments, sent } = stage;
    segments.open('thought', null, { reasoning: true });
    segments.write('hm');
    await sent();
    segments.write(', yes');
    segments.close(true);
    segments.open('text');
    segments.write('words');
    segments.close(false);
    segments.open('response', true);
    segments.write('an');
    segments.write('swer');
    segments.close(false, true);
    expect(told(await sent())).toEqual([
      ['thought_started', 1, { reasoning: true }],
      ['thought', null, { segment: 1, offset: 0, delta: 'hm' }],
      ['thought', null, { segment: 1, offset: 2, delta: ', yes' }],
      ['thought_completed', 2, { segment: 1, content: 'hm, yes', unclosed: true }],
      ['text_started', 3, {}],
      ['text', null, { segment: 3, offset: 0, delta: 'words' }],
      ['text_completed', 4, { segment: 3, content: 'words' }],
      ['response_started', 5, { final: true }],
      ['response', null, { segment: 5, offset: 0, delta: 'answer' }],
      ['response_completed', 6, { segment: 5, content: 'answer', final: true, cut: true }],
    ]);
    expect([2, 4, 6].map((seq) => stage.stateOf(seq))).toEqual([null, null, null]);
  });

  test('of a thought is streamed only if the manifest allows it; its text is complete in both cases', async () => {
    const { segments, sent } = scene(false);
    segments.open('text');
    segments.write('a');
    segments.open('thought');
    segments.write('hidden');
    await sent();
    expect(segments.catchUp().map(({ type }) => type)).toEqual(['text']);
    segments.close(false);
    segments.close(false);
    expect((await sent()).map(({ type }) => type)).toEqual([
      'text_started',
      'text',
      'thought_started',
      'thought_completed',
      'text_completed',
    ]);
    expect(eventsOf(await sent(), 'thought_completed')[0]?.data.content).toBe('hidden');
  });

  test('without text has no patch', async () => {
    const { segments, sent } = scene();
    segments.open('text');
    segments.write('');
    segments.close(false);
    expect((await sent()).map(({ type }) => type)).toEqual(['text_started', 'text_completed']);
  });

  test('continues after another block inside it', async () => {
    const { segments, sent } = scene();
    segments.open('text');
    segments.write('before ');
    segments.open('thought');
    segments.write('hm');
    segments.close(false);
    segments.write('after');
    segments.close(false);
    expect(told(await sent()).slice(-3)).toEqual([
      ['thought_completed', 3, { segment: 2, content: 'hm' }],
      ['text', null, { segment: 1, offset: 7, delta: 'after' }],
      ['text_completed', 4, { segment: 1, content: 'before after' }],
    ]);
  });

  test('belongs to the iteration in which it began', async () => {
    const stage = scene();
    stage.values.set('a', RUNNING);
    stage.segments.open('response');
    stage.refer('a');
    stage.segments.close(false);
    stage.log.enterIteration(2);
    stage.values.set('a', value('x'));
    stage.segments.advance();
    expect(eventsOf(await stage.sent(), 'response_completed')).toMatchObject([
      { iteration: 1, data: { content: 'x' } },
    ]);
  });

  test('is required for text: without one, text, references and ends have no effect', async () => {
    const stage = scene();
    stage.segments.write('x');
    stage.refer('a');
    stage.segments.close(false);
    stage.segments.advance();
    stage.segments.finishPending();
    expect(await stage.sent()).toEqual([]);
  });
});

describe('[P13] a response with references', () => {
  test('waits at the first running reference, together with its end; later blocks do not wait', async () => {
    const stage = scene();
    const { segments, values, refer, sent } = stage;
    values.set('slow', RUNNING);
    segments.open('response');
    segments.write('got ');
    refer('slow');
    segments.write(' and ');
    refer('late');
    segments.close(true);
    segments.open('response', true);
    segments.write('meanwhile');
    segments.close(false);
    expect(await completed(stage)).toEqual([{ segment: 2, content: 'meanwhile', final: true }]);
    segments.advance();
    expect(segments.responses).toMatchObject([{ content: 'meanwhile', final: true }]);
    values.set('slow', value('it'));
    values.set('late', RUNNING);
    segments.advance();
    expect(await completed(stage)).toHaveLength(1);
    values.set('late', value('more'));
    segments.advance();
    segments.advance();
    expect((await completed(stage)).slice(1)).toEqual([
      { segment: 1, content: 'got it and more', final: null, unclosed: true },
    ]);
    expect(segments.responses).toMatchObject([
      { content: 'meanwhile', final: true },
      { content: 'got it and more', final: null },
    ]);
    const patches = eventsOf(await sent(), 'response').filter(({ data }) => data.segment === 1);
    expect(patches.map(({ data }) => [data.offset, data.delta])).toEqual([
      [0, 'got '],
      [4, 'it and '],
      [11, 'more'],
    ]);
  });

  test('that is still open continues with the value, and ends only when it is closed', async () => {
    const stage = scene();
    stage.values.set('a', RUNNING);
    stage.segments.open('response');
    stage.refer('a');
    stage.refer('a');
    stage.segments.write('!');
    stage.values.set('a', value('x'));
    stage.segments.advance();
    expect(stage.segments.catchUp()).toEqual([]);
    await stage.sent();
    expect(stage.segments.catchUp()).toMatchObject([
      { type: 'response', data: { segment: 1, offset: 0, delta: 'xx!' } },
    ]);
    expect(await completed(stage)).toEqual([]);
    stage.segments.write('?');
    stage.segments.close(false);
    expect(await completed(stage)).toMatchObject([{ content: 'xx!?' }]);
  });

  test('[M8] also keeps the unresolved beginning', async () => {
    const stage = scene();
    stage.values.set('a', value('7'));
    stage.segments.open('response');
    stage.segments.write('It is ');
    stage.refer('a');
    stage.segments.write(', I ');
    stage.segments.write('think');
    stage.segments.close(false);
    const [event] = eventsOf(await stage.sent(), 'response_completed');
    expect(event?.data.content).toBe('It is 7, I think');
    expect(stage.stateOf(event?.seq ?? 0)).toEqual({ written: 'It is $a, I think' });
  });

  test('[S10] that waits at the end of the run is completed without the missing values', async () => {
    const stage = scene();
    stage.values.set('a', RUNNING);
    stage.segments.open('response', false);
    stage.segments.write('one ');
    stage.refer('a');
    stage.segments.write(' two');
    stage.segments.close(false);
    stage.segments.open('text');
    stage.segments.write('cut o');
    stage.segments.open('thought');
    stage.segments.finishPending();
    expect(told((await stage.sent()).filter(({ type }) => type.endsWith('_completed')))).toEqual([
      ['thought_completed', 4, { segment: 3, content: '', unclosed: true }],
      ['text_completed', 5, { segment: 2, content: 'cut o', unclosed: true }],
      ['response_completed', 6, { segment: 1, content: 'one [a: pending] two', final: false, pending: ['a'] }],
    ]);
    stage.segments.finishPending();
    stage.segments.advance();
    expect(await completed(stage)).toHaveLength(1);
  });

  test('[J4] sends a reader that connects late the text of every open block, once', async () => {
    const stage = scene();
    const { segments } = stage;
    stage.values.set('a', RUNNING);
    segments.open('response');
    segments.write('waits ');
    stage.refer('a');
    segments.close(false);
    segments.open('text');
    segments.open('thought');
    segments.write('hm');
    await stage.sent();
    expect(told(segments.catchUp())).toEqual([
      ['response', null, { segment: 1, offset: 0, delta: 'waits ' }],
      ['thought', null, { segment: 3, offset: 0, delta: 'hm' }],
    ]);
    segments.close(false);
    segments.write('words');
    segments.close(false);
    segments.open('response');
    segments.write('this ');
    stage.refer('a');
    await stage.sent();
    expect(told(segments.catchUp())).toEqual([
      ['response', null, { segment: 1, offset: 0, delta: 'waits ' }],
      ['response', null, { segment: 6, offset: 0, delta: 'this ' }],
    ]);
    segments.finishPending();
    expect(segments.catchUp()).toEqual([]);
    stage.values.set('b', value('7'));
    segments.open('response');
    stage.refer('b');
    segments.close(false);
    expect(segments.catchUp()).toEqual([]);
  });

  test('[J1] [J4] readers get nothing of a turn that is not durable, and neither does the end of a lost block', async () => {
    const stage = scene();
    const { segments } = stage;
    stage.values.set('a', RUNNING);
    segments.open('response');
    segments.write('It is ');
    stage.refer('a');
    segments.write('.');
    await stage.sent();
    stage.values.set('a', value('7'));
    segments.advance();
    const had = [{ segment: 1, content: 'It is ', written: 'It is $a.' }];
    expect(segments.catchUp()).toMatchObject([{ data: { delta: 'It is ' } }]);
    expect(segments.unwritten()).toMatchObject(had);
    segments.close(false);
    expect(segments.unwritten()).toMatchObject(had);
    await stage.sent();
    expect(segments.unwritten()).toEqual([]);
  });

  test('[P12] warns once about each reference, with the reason', async () => {
    const stage = scene();
    stage.values.set('b', value(null));
    stage.values.set('c', { type: 'absent', why: 'failed' });
    stage.segments.open('response');
    for (const name of ['a', 'b', 'a', 'c', 'b']) stage.refer(name);
    stage.segments.close(false);
    expect(await warnings(stage)).toEqual([
      { code: 'unknown_reference', message: '$a refers to a name that was not declared before; left unchanged' },
      { code: 'missing_path', message: '$b: this value is null' },
    ]);
  });

  test('[P16] gives a limited number of warnings', async () => {
    const stage = scene();
    stage.segments.open('response');
    for (let at = 0; at <= limits.warningsPerGeneration; at += 1) stage.refer(`u${at}`);
    expect(await warnings(stage)).toHaveLength(limits.warningsPerGeneration);
  });
});

describe('[P11] the bare text of a run', () => {
  test('is the text of the last generation with bare text', () => {
    const { segments, log } = scene();
    expect(segments.bareText).toBe('');
    const say = (type: 'text' | 'thought' | 'response', text: string): void => {
      segments.open(type);
      segments.write(text);
      segments.close(false);
    };
    say('text', 'early');
    log.enterIteration(2);
    say('text', 'one');
    say('thought', 'hm');
    say('text', 'two');
    log.enterIteration(3);
    say('response', 'no bare text');
    expect(segments.bareText).toBe('one\n\ntwo');
    expect(segments.responses).toMatchObject([{ content: 'no bare text', final: null }]);
  });
});

describe('[P13] a response is cut', () => {
  const mark = `\n[response cut at ${limits.responseBytes} bytes]`;
  const whole = 'x'.repeat(limits.responseBytes);

  test.each([
    ['text of exactly the limit', [whole], whole, 0],
    ['in the first piece', [`${whole}y`], `${whole}${mark}`, 1],
    ['in a later piece', [whole.slice(1), 'yz', 'more'], `${whole.slice(1)}y${mark}`, 1],
    ['after the last byte', [whole, 'y', 'z'], `${whole}${mark}`, 1],
    ['before a character that does not fit', [whole.slice(3), '😀'], `${whole.slice(3)}${mark}`, 1],
    ['after a character that fits', [whole.slice(4), '😀y'], `${whole.slice(4)}😀${mark}`, 1],
  ])('at its limit: %s', async (_name, pieces, content, warned) => {
    const stage = scene();
    stage.segments.open('response');
    for (const piece of pieces) stage.segments.write(piece);
    stage.segments.close(false);
    const [found] = await completed(stage);
    // A failed comparison of megabytes would print them.
    expect(found?.content === content, found?.content.slice(-60)).toBe(true);
    const message = `A response is longer than ${limits.responseBytes} bytes; the rest was left out`;
    expect(await warnings(stage)).toEqual(Array.from({ length: warned }, () => ({ code: 'truncated', message })));
    const patches = eventsOf(await stage.sent(), 'response').map(({ data }) => data.delta);
    expect(patches.join('') === content).toBe(true);
  });

  test('bare text and thoughts have no such limit', async () => {
    const stage = scene();
    stage.segments.open('text');
    stage.segments.write(`${whole}y`);
    stage.segments.close(false);
    expect(stage.segments.bareText).toHaveLength(whole.length + 1);
    expect(await warnings(stage)).toEqual([]);
  });

  test('when the references of the run have exceeded their quota', async () => {
    const stage = scene();
    const share = limits.runResponseChars / 8;
    stage.values.set('a', value('v'.repeat(share)));
    stage.values.set('b', value('w'));
    for (let at = 0; at < 8; at += 1) {
      stage.segments.open('response');
      stage.refer('a');
      stage.segments.close(false);
    }
    expect(await warnings(stage)).toEqual([]);
    stage.segments.open('response');
    stage.segments.write('so ');
    for (const name of ['b', 'unknown', 'b']) stage.refer(name);
    stage.segments.write(' gone');
    stage.segments.close(false);
    const why = `the references of this run have rendered ${limits.runResponseChars} characters`;
    const found = await completed(stage);
    expect(found[7]?.content).toHaveLength(share);
    expect(found[8]?.content).toBe(`so \n[response cut: ${why}]`);
    expect(await warnings(stage)).toEqual([
      { code: 'truncated', message: `A response was cut: ${why}; the rest was left out` },
    ]);
  });
});
