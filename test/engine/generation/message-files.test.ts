/** Images and files in messages: what the model gets of them, now and in later turns (C2). */
import { expect, test } from 'vitest';
import type { FilePart, MessageContent } from '../../../src/domain/content.ts';
import type { BlobStore } from '../../../src/domain/ports/storage.ts';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import { say, sessionKit, textOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const DONE = '<response final="true">ok</response>';

class Blobs implements BlobStore {
  readonly reads: string[] = [];
  readonly #known = new Map<string, Uint8Array>();
  async put(sha256: string, bytes: Uint8Array): Promise<void> {
    this.#known.set(sha256, bytes);
  }
  async get(sha256: string): Promise<Uint8Array | null> {
    this.reads.push(sha256);
    return this.#known.get(sha256) ?? null;
  }
}

async function kitWith(script: readonly (string | ModelDelta[])[] = [DONE, DONE]) {
  const blobs = new Blobs();
  const kit = await sessionKit({ script, blobs });
  const part = async (name: string, mediaType: string, text: string): Promise<FilePart> => {
    const sha256 = `hash of ${name}`;
    await blobs.put(sha256, new TextEncoder().encode(text));
    return {
      type: mediaType.startsWith('image/') ? 'image' : 'file',
      name,
      media_type: mediaType,
      size: text.length,
      sha256,
    };
  };
  return { kit, blobs, part };
}

const messageOf = (request: ModelRequest | undefined, index: number): string => request?.messages[index]?.content ?? '';

async function attachedTo(kit: SessionKit, call: number): Promise<string[]> {
  const attachments = kit.requests[call]?.messages.flatMap((message) => message.attachments ?? []) ?? [];
  return await Promise.all(
    attachments.map(async ({ name, read }) => `${name}: ${new TextDecoder().decode(await read())}`),
  );
}

test('[C2] a message shows placeholders at their places, text files as text, and has its images attached', async () => {
  const { kit, blobs, part } = await kitWith();
  const content: MessageContent = [
    { type: 'text', text: 'compare' },
    await part('a.png', 'image/png', 'bytes of a'),
    { type: 'text', text: 'with' },
    await part('b.csv', 'text/csv; charset=utf-8', 'x,y'),
  ];
  await say(kit, content);
  expect(messageOf(kit.requests[0], 1)).toBe(
    [
      'compare\n[image "a.png", image/png, 10 bytes]\nwith\n[file "b.csv", text/csv; charset=utf-8, 3 bytes]',
      '<attached_file name="b.csv" type="text/csv">\nx,y\n</attached_file>',
    ].join('\n\n'),
  );
  expect(blobs.reads).toEqual(['hash of b.csv']);
  expect(await attachedTo(kit, 0)).toEqual(['a.png: bytes of a']);
});

test('[C2] the prompt record has the hash of an attachment, never its bytes', async () => {
  const { kit, part } = await kitWith();
  const { run_id: runId } = await say(kit, [await part('a.png', 'image/png', 'the bytes')]);
  const record = await textOf(kit.session.read().prompt(kit.session.run(runId)));
  expect(record).toContain(
    '"attachments":[{"type":"image","name":"a.png","media_type":"image/png","size":9,"sha256":"hash of a.png"}]',
  );
  expect(record).not.toContain('the bytes');
});

test('[C2] a model that reports images it did not get: one warning per run, over several generations', async () => {
  const notice: ModelDelta = { type: 'notice', code: 'attachments_not_shown', message: 'no vision' };
  const act = '<action type="tool" id="x">{"name":"echo","parameters":{}}</action>';
  const say2 = (text: string): ModelDelta[] => [notice, { type: 'text', text }, { type: 'finish', reason: 'stop' }];
  const { kit } = await kitWith([say2(act), say2(DONE), say2(DONE)]);
  const warning = { code: 'attachments_not_shown', message: 'no vision' };
  expect((await say(kit, 'one')).warnings).toEqual([warning]);
  expect((await say(kit, 'two')).warnings).toEqual([warning]);
});

test('[C2] the same idempotency key with the same parts is the same run', async () => {
  const { kit, part } = await kitWith();
  const sending = async (content: MessageContent) => await send(kit, content, { idempotencyKey: 'k' });
  const image = await part('a.png', 'image/png', 'A');
  const first = await sending([image]);
  expect((await sending([{ ...image }])).run).toBe(first.run);
  await expect(sending([{ ...image, sha256: 'other' }])).rejects.toMatchObject({ code: 'idempotency_mismatch' });
});
