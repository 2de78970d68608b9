/** What a conversation shows at its boundaries: notices, cut values, attributes, escapes (L5, M8, X1). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { ActionReport, ChatTurn } from '../../../src/protocol/prompt/chat-turn.ts';
import { compact } from '../../../src/protocol/prompt/compaction.ts';
import { escapeReservedTags } from '../../../src/protocol/prompt/escape-reserved-tags.ts';
import { buildMessages } from '../../../src/protocol/prompt/feedback.ts';
import { done } from './action-reports.ts';

const most = limits.resultPromptChars;
const turn = (...generations: ActionReport[][]): ChatTurn => ({
  user: 'go',
  generations: generations.map((results) => ({ text: 'said', results })),
});
const shown = (current: ChatTurn): string =>
  buildMessages({ system: 'S', history: [], current })
    .map(({ content }) => content)
    .join('\n');
const rejected = (id: string, note = 'no'): ActionReport => ({ id, name: null, status: 'rejected', ms: null, note });

describe('[L5] messages', () => {
  test('[M8] older turns are announced before those that are kept', () => {
    const history = [turn([done('a', 1)]), turn([done('b', 2)]), turn([done('c', 3)])];
    const [, first] = buildMessages({
      system: 'S',
      history,
      memory: { maxTurns: 1, summarizeAfter: null },
      current: turn(),
    });
    expect(first?.role).toBe('user');
    expect(first?.content).toMatch(
      /^<system>2 earlier turns of this conversation are left out here\.\n.*<\/system>\n\ngo$/,
    );
  });

  test('no feeds give no message', () => {
    const conversation = { system: 'S', history: [], current: turn() };
    expect(buildMessages({ ...conversation, current: { ...turn(), feeds: [] } })).toEqual(buildMessages(conversation));
  });

  test('[X1] the note of a turn cannot contain a tag', () => {
    expect(shown({ ...turn(), note: 'a <action> and <system>' })).toContain(
      '<system>a &lt;action> and &lt;system></system>',
    );
  });
});

describe('[L5] a value that is cut', () => {
  const long = 'x'.repeat(most + 1);
  const whole = (name: string): string =>
    `[cut after ${most} of ${most + 1} characters; the whole value is in ${name}]`;

  test('a value of the greatest length is not cut', () => {
    expect(shown(turn([done('a', 'x'.repeat(most))]))).not.toContain('cut after');
    expect(shown(turn([done('a', long)]))).toContain(whole('$a'));
  });

  test('a reason of a failure is cut without a reference', () => {
    const failed: ActionReport = { id: 'a', name: 'x', status: 'failed', ms: 1, note: long };
    expect(shown(turn([failed]))).toContain(`[cut after ${most} of ${most + 1} characters]`);
  });

  test('is cut before a pair of surrogates, not inside it', () => {
    for (const pair of ['\u{10000}', '😀', '\u{10ffff}']) {
      const text = shown(turn([done('a', `${'x'.repeat(most - 1)}${pair}y`)]));
      expect(text).toContain(`x\n[cut after ${most - 1} of ${most + 2} characters`);
    }
    for (const single of ['\ud7ff', '\ue000']) {
      expect(shown(turn([done('a', `${'x'.repeat(most - 1)}${single}yy`)]))).toContain(
        `x${single}\n[cut after ${most} of`,
      );
    }
  });

  test('[P6] an action rejected next to it does not take over its name, one of a later generation does', () => {
    expect(shown(turn([done('a', long), rejected('a')]))).toContain(whole('$a'));
    expect(shown(turn([rejected('a'), done('a', long)]))).toContain(whole('$a'));
    expect(shown(turn([done('a', long)], [rejected('a')]))).not.toContain('the whole value');
    expect(shown(turn([done('a', long)], [done('a', 1)]))).not.toContain('the whole value');
  });
});

describe('[X1] attributes', () => {
  test.each([
    ['a&b', 'a&amp;b'],
    ['"<a>"', '&quot;&lt;a&gt;&quot;'],
    ['a \n\t b', 'a b'],
    ['y'.repeat(2 * limits.idChars + 1), 'y'.repeat(2 * limits.idChars)],
    [`${'y'.repeat(2 * limits.idChars - 1)}😀`, 'y'.repeat(2 * limits.idChars - 1)],
  ])('%j becomes %j', (id, attribute) => {
    expect(shown(turn([rejected(id)]))).toContain(`<action_result id="${attribute}" status="rejected">`);
  });
});

describe('[X1] escaping', () => {
  test.each(['a < b é', '<b>ü</b>', '< é action>', '＜b＞', '<é action>', 'x <= ÿ <system-é>'])(
    '%j is not a reserved tag',
    (text) => {
      expect(escapeReservedTags(text)).toBe(text);
    },
  );
  test('a user may mention tags of the model, but not those of the runtime', () => {
    expect(escapeReservedTags('<action> é <＜results>', 'runtime')).toBe('<action> é <&lt;results>');
  });
});

describe('[M8] a summary', () => {
  const older = (count: number, chars: number): ChatTurn[] =>
    Array.from({ length: count }, (_, at) => ({ user: `${at} ${'q'.repeat(chars)}`, answer: 'a', generations: [] }));

  test('says how many turns did not fit', () => {
    const count = 1_000;
    const history = [...older(count, 100), turn()];
    const { notice } = compact(history, { maxTurns: 1, summarizeAfter: 1 });
    const kept = notice?.match(/^- User: /gm)?.length ?? 0;
    expect(kept).toBeLessThan(count);
    expect(notice).toContain(
      `<system>${count} earlier turns of this conversation are shortened here.\n[${count - kept} left out]\n- User: ${count - kept} q`,
    );
    expect(compact([...older(1, 1), turn()], { maxTurns: 1, summarizeAfter: 1 }).notice).toBe(
      '<system>1 earlier turn of this conversation is shortened here.\n- User: 0 q\n  You: a</system>',
    );
  });

  test('names as many values as fit, the newest', () => {
    const name = (at: number): string => `n${String(at).padStart(5, '0')}`;
    const count = limits.summaryChars;
    const many = turn(Array.from({ length: count }, (_, at) => done(name(at), 1)));
    const { notice } = compact([many, turn()], { maxTurns: 1, summarizeAfter: null });
    const fitting = Math.floor(limits.summaryChars / ('$n00000'.length + 2));
    const names = Array.from({ length: fitting }, (_, at) => `$${name(count - fitting + at)}`);
    expect(notice?.split('still be used: ')[1]).toBe(`${names.join(', ')}</system>`);
  });
});
