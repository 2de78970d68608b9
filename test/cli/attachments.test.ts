/** `/attach` of the chat (C2). */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Attachments } from '../../cli/chat/attachments.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'attach-'));
  await writeFile(join(folder, 'my chart.PNG'), 'png');
  await writeFile(join(folder, 'notes.md'), 'text');
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

test('[C2] attached files are sent once, with the next message', async () => {
  const attachments = new Attachments();
  expect(await attachments.command(`/attach ${join(folder, 'my\\ chart.PNG')}`)).toBe(
    'attached my chart.PNG (3 bytes) to your next message',
  );
  await attachments.command(`/attach '${join(folder, 'notes.md')}'`);
  expect(attachments.take('look')).toEqual([
    { type: 'text', text: 'look' },
    { type: 'image', name: 'my chart.PNG', data: btoa('png') },
    { type: 'file', name: 'notes.md', data: btoa('text') },
  ]);
  expect(attachments.take('again')).toBe('again');
});

test('[C2] a missing file is reported, and another line is a message', async () => {
  const attachments = new Attachments();
  expect(await attachments.command(`/attach ${join(folder, 'none')}`)).toMatch(/^not attached: no such file/);
  expect(await attachments.command('/attach')).toBe('usage: /attach <path or URL of a file>');
  expect(await attachments.command('what does /attach do?')).toBeNull();
  expect(attachments.take('x')).toBe('x');
});

test('[C2] a URL is passed on; the system fetches it', async () => {
  const attachments = new Attachments();
  expect(await attachments.command('/attach https://example.com/a/chart.PNG?size=2')).toBe(
    'attached https://example.com/a/chart.PNG?size=2 to your next message; the system fetches it',
  );
  await attachments.command('/attach HTTPS://example.com/report');
  expect(attachments.take('look')).toEqual([
    { type: 'text', text: 'look' },
    { type: 'image', url: 'https://example.com/a/chart.PNG?size=2' },
    { type: 'file', url: 'HTTPS://example.com/report' },
  ]);
});
