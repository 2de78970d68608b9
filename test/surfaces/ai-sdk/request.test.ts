/** Requests of the AI SDK as commands (E1). */
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { readChat } from '../../../src/surfaces/ai-sdk/index.ts';
import type { SurfaceCommand } from '../../../src/surfaces/surface.ts';

type Run = Extract<SurfaceCommand, { type: 'run' }>;

function read(role: 'user' | 'assistant', parts: Json, more: object = {}): Run {
  const body = { id: 'chat', messages: [{ id: 'm', role, parts }], ...more } as unknown as Json;
  const input = { body, params: { name: 'assistant' }, query: {}, key: null, session: null, isKey: true };
  const { command } = readChat(input);
  if (command.type !== 'run') throw new Error('a chat is a run');
  return command;
}

const file = (url: string): Json => [{ type: 'file', url, mediaType: 'text/plain', filename: 'n.txt' }];

describe('[E1] a file of a message', () => {
  test.each([
    ['in base64', `data:text/plain;base64,${btoa('a note')}`, 'a note'],
    ['as text', 'data:text/plain,a%20note', 'a note'],
    ['as text with a parameter', 'data:text/plain;charset=utf-8,%C3%A9', 'é'],
    ['as text whose escapes are not valid', 'data:,100%', '100%'],
  ])('is a data URL %s', (_, url, text) => {
    const { content } = read('user', file(url)).message ?? { content: [] };
    const [part] = content as readonly { readonly data?: string }[];
    expect(Buffer.from(part?.data ?? '', 'base64').toString()).toBe(text);
  });

  test.each(['https://example.com/n.txt', 'blob:https://example.com/1', 'data:no comma'])('is %s, as it is', (url) => {
    expect(read('user', file(url)).message?.content).toEqual([
      { type: 'file', name: 'n.txt', media_type: 'text/plain', url },
    ]);
  });
});

test('[E1] a reason is cut at the length of notes; answers that come too late are ignored', () => {
  const approval = { id: 'apr_1', approved: false, reason: 'x'.repeat(limits.approvalNoteChars + 1) };
  const part = { type: 'dynamic-tool', toolCallId: 'a', state: 'approval-responded', approval };
  const { decisions, ignoresLate } = read('assistant', [part]);
  expect(decisions).toEqual([{ approvalId: 'apr_1', approved: false, note: 'x'.repeat(limits.approvalNoteChars) }]);
  expect(ignoresLate).toBe(true);
});

test.each([
  [{}, undefined],
  [{ messageId: 'another' }, undefined],
  [{ messageId: 'm' }, { how: 'edited' }],
  [{ trigger: 'regenerate-message' }, { how: 'again', of: null }],
  [
    { trigger: 'regenerate-message', messageId: 'm' },
    { how: 'again', of: null },
  ],
  [
    { trigger: 'regenerate-message', messageId: 'run_1' },
    { how: 'again', of: 'run_1' },
  ],
])('[E1] [C4] a request with %j means a message that was sent before: %j', (more, changes) => {
  expect(read('user', [{ type: 'text', text: 'Hello' }], more).message?.changes).toEqual(changes);
});

test.each([
  ['m', undefined],
  ['user_', undefined],
  ['user_run_1', 'run_1'],
])('[E1] [C4] a message with the id %s is that of the run %s', (id, runId) => {
  const parts = [{ type: 'text', text: 'Hello' }];
  expect(read('user', parts, { messages: [{ id, role: 'user', parts }] }).message?.runId).toBe(runId);
});
