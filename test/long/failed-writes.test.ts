/**
 * A statement can fail at any place while its host lives on: a disk that is full, a row that is too large. In each of these
 * small histories, each statement that writes fails once, alone and together with the next one, and all invariants hold.
 */
import { describe, expect, test } from 'vitest';
import type { ActionScript, GenerationScript, History, Item, MessageScript } from '../simulation/history.ts';
import type { Violation } from '../simulation/invariants/invariant.ts';
import { Thread } from '../simulation/pool.ts';
import { historyText, violationsText } from '../simulation/print/print.ts';
import { USUAL_ACTION, USUAL_AGENT, USUAL_GENERATION } from '../simulation/usual.ts';

/** No history writes more often before its host has nothing to do. */
const MOST_STATEMENTS = 300;

describe('[J1] what must not be parted is not, whichever statements fail', () => {
  test.each(Object.entries(histories()))('%s', async (_what, history) => {
    await using thread = new Thread();
    const whole = await thread.run(history);
    expect(broken(history, whole.violations)).toEqual([]);
    let statement = 1;
    for (let unchanged = 0; unchanged < 3 && statement < MOST_STATEMENTS; statement += 1) {
      for (const count of [1, 2]) {
        const faults = [...history.faults, ...failing(statement, count)];
        const failed = await thread.run({ ...history, faults }, { isDetailed: true });
        const violations = broken(history, failed.violations);
        if (violations.length > 0)
          expect.fail(`${violationsText(violations)}\n\n${historyText({ ...history, faults }, failed.seen)}`);
        // A statement that the host does not make changes nothing.
        if (count === 1) unchanged = failed.digest === whole.digest ? unchanged + 1 : 0;
      }
    }
    expect(statement).toBeGreaterThan(10);
    expect(statement).toBeLessThan(MOST_STATEMENTS);
  });
});

/** A summary takes the place of turns, which these expect in each prompt. */
const OF_ALL_TURNS: ReadonlySet<string> = new Set(['own branch', 'images shown']);

function broken({ agent }: History, violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ invariant }) => agent.summarizeAfter === undefined || !OF_ALL_TURNS.has(invariant));
}

function failing(first: number, count: number): History['faults'] {
  return Array.from({ length: count }, (_, at) => ({ type: 'write', life: 1, statement: first + at }) as const);
}

function histories(): Record<string, History> {
  const unsafe = action({ target: 'unsafe', key: 1 });
  const long: Item = { type: 'response', final: true, refers: [] };
  return {
    'unsafe actions with the same idempotency key': of([
      message(0, [[unsafe]]),
      message(50, [[unsafe, action({ target: 'pure', key: 2 })]]),
      message(100, [[action({ target: 'pure', key: 2 })]]),
    ]),
    'a result in an answer': of([
      message(0, [[action({ target: 'pure', attempts: [{ ms: 5, end: 'ok' }] }), response([0])]], { gapMs: 1 }),
    ]),
    'retries, and actions that depend on each other': of([
      message(0, [
        [
          action({
            target: 'idempotent',
            retries: 3,
            attempts: [
              { ms: 1, end: 'fails' },
              { ms: 1, end: 'ok' },
            ],
          }),
          action({ dependsOn: [-1] }),
          response([0, 1]),
        ],
      ]),
    ]),
    'changes of variables on two branches': of([
      message(0, [[action({ target: 'variable' })]]),
      message(60, [[action({ target: 'variable' }), action({ target: 'variable' })]], {
        branch: { how: 'edit', back: 0, nth: 0 },
      }),
      message(120, [[action({ target: 'variable' })]], { branch: { how: 'follows', back: 1, nth: 0 } }),
    ]),
    'a head that is moved back': of([message(0, [[action({ target: 'variable' })]]), message(60), message(200)], {
      requests: [{ type: 'head', at: 120, back: 1 }],
    }),
    'files of a program': of([message(0, [[action({ target: 'python' }), action({ target: 'python' })]])]),
    'files of messages': of([
      message(0, [[]], {
        files: [
          { form: 'image', body: 1 },
          { form: 'text', body: 2 },
        ],
      }),
      message(60, [[]], { files: [{ form: 'image', body: 1 }] }),
    ]),
    'a call of the client': of([
      message(0, [[action({ target: 'client', key: 2, attempts: [{ ms: 10, end: 'lost' }] }), response([0])]]),
    ]),
    'an approval': of([message(0, [[action({ target: 'unsafe', key: 1 })]]), message(400, [[unsafe]])], {
      agent: { ...USUAL_AGENT, supervised: true },
      decisions: [1, 2].map(() => ({ afterMs: 20, approved: true, times: 2 })),
    }),
    'a question of a target, and policies': of(
      [
        message(0, [
          [
            action({
              target: 'late',
              attempts: [
                { ms: 1, end: 'asks' },
                { ms: 1, end: 'ok' },
              ],
            }),
            unsafe,
          ],
        ]),
      ],
      {
        agent: { ...USUAL_AGENT, policies: true },
        decisions: [1, 2, 3].map(() => ({ afterMs: 20, approved: true, times: 1 })),
      },
    ),
    'a sub-agent, and a code tool': of([message(0, [[action({ target: 'child' }), action({ target: 'code' })]])]),
    'messages that come during a run': of([
      message(0, [[action({ target: 'late', attempts: [{ ms: 40, end: 'ok' }] })], [response([])]]),
      message(10, [[]], { ifBusy: 'steer' }),
      message(20, [[]], { ifBusy: 'steer', files: [{ form: 'text', body: 1 }] }),
      message(41, [[]], { ifBusy: 'steer' }),
    ]),
    'messages that a cancelled run has received': of(
      [
        message(0, [[action({ target: 'late', attempts: [{ ms: 100, end: 'ok' }] })]]),
        message(10, [[]], { ifBusy: 'steer' }),
        message(20, [[]], { ifBusy: 'queue' }),
        message(25, [[]], { ifBusy: 'queue' }),
      ],
      { requests: [{ type: 'cancel', at: 30 }] },
    ),
    'a feed': of([message(0, [[action({})]])], { agent: { ...USUAL_AGENT, feed: true } }),
    'long text, in several rows': of([
      message(0, [[{ type: 'thought', words: 300 }, action({}), { type: 'bare', words: 300 }], [long]], {
        pieceChars: 40,
        gapMs: 2,
      }),
    ]),
    'a summary of older turns': of([message(0), message(60), message(120), message(180)], {
      agent: { ...USUAL_AGENT, summarizeAfter: 2 },
    }),
    'a fork': of([message(0, [[action({ target: 'variable' }), action({ target: 'python' })]]), message(80)], {
      requests: [{ type: 'fork', at: 200, back: 0 }],
    }),
    'a seeded history': of([message(0, [[action({})]])], {
      seeded: [
        { type: 'user', words: 3 },
        { type: 'call', words: 3 },
        { type: 'assistant', words: 200 },
      ],
    }),
    'a session that is deleted and made again': of([message(0, [[action({})]]), message(250)], {
      requests: [{ type: 'delete', at: 100, exportMs: null, againMs: 50 }],
    }),
    'posted text': of([
      { ...message(0, [[unsafe, action({ target: 'pure' })]]), type: 'text' },
      { ...message(60, [[unsafe]]), type: 'text' },
    ]),
    'an action that runs again': of([
      message(0, [[action({ target: 'pure' })]]),
      message(60, [[]], { branch: { how: 'rerun', back: 0, nth: 0 } }),
    ]),
    'the lists of all sessions': of([message(0, [[action({})]]), message(60)], {
      faults: [{ type: 'index', at: 0, forMs: 0, works: true }],
    }),
    'a background action, and a run that waits': of([
      message(0, [
        [
          action({ target: 'pure', mode: 'fire_and_forget', attempts: [{ ms: 80, end: 'ok' }] }),
          action({ target: 'client', attempts: [{ ms: 30, end: 'ok' }] }),
          response([1]),
        ],
      ]),
      message(20),
    ]),
  };
}

function of(messages: readonly MessageScript[], more: Partial<History> = {}): History {
  const given = {
    order: 0,
    agent: USUAL_AGENT,
    messages,
    decisions: [],
    requests: [],
    faults: [],
    seeded: [],
    ...more,
  };
  const reader = { type: 'reader', at: 0, fromEnd: false, pauseMs: 0, reads: null } as const;
  return { ...given, requests: [...given.requests, reader] };
}

function message(
  at: number,
  generations: readonly (readonly Item[])[] = [[response([])]],
  {
    pieceChars = 1_000,
    gapMs = 0,
    ...more
  }: Partial<MessageScript & Pick<GenerationScript, 'pieceChars' | 'gapMs'>> = {},
): MessageScript {
  return {
    type: 'message',
    at,
    ifBusy: 'queue',
    branch: null,
    repeats: true,
    via: null,
    files: [],
    generations: generations.map((items) => ({ ...USUAL_GENERATION, items, pieceChars, gapMs })),
    ...more,
  };
}

function action(changes: Partial<ActionScript>): Item {
  return { type: 'action', action: { ...USUAL_ACTION, ...changes } };
}

function response(refers: readonly number[]): Item {
  return { type: 'response', final: true, refers };
}
