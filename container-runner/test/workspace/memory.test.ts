/** Concurrent transfers of large files (C7): the runner streams them, and does not keep them in memory. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { FRAME_HEAD_BYTES } from '../../workspace/frames.ts';
import { launchRunner } from '../support/runner-process.ts';
import { signed } from '../support/test-runner.ts';
import { framesOf, sha256Of } from '../support/workspace-kit.ts';

const TRANSFERS = 12;

let stateDir: string;
let child: ChildProcess;
let url: string;
beforeEach(async () => {
  stateDir = fs.mkdtempSync(path.join(os.tmpdir(), 'runner-memory-'));
  const runner = launchRunner(stateDir, {
    RUNNER_SANDBOX: 'process',
    RUNNER_ALLOW_PROCESS: '1',
    RUNNER_DOCKER: 'off',
    RUNNER_WARM: '0',
  });
  child = runner.child;
  ({ url } = await runner.ready());
});
afterEach(() => {
  child.kill('SIGKILL');
  fs.rmSync(stateDir, { recursive: true, force: true });
});

/** One request on a connection of its own: an idle one may be closed while this process is busy. */
async function send(method: string, target: string, body: Uint8Array): Promise<{ status: number; bytes: number }> {
  const { headers } = await signed(url, method, target, body);
  return await new Promise((resolve, reject) => {
    const options = {
      method,
      agent: false,
      headers: { ...Object.fromEntries(headers), 'content-length': body.length },
    };
    const request = http.request(url + target, options, (answer) => {
      let bytes = 0;
      answer.on('data', (chunk: Buffer) => (bytes += chunk.length));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, bytes }));
      answer.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** The most memory that the runner has used, in bytes. */
function peak(): number {
  const [, kilobytes = '0'] = /^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}

test.skipIf(process.platform !== 'linux')('[C7] concurrent transfers of large files need little memory', async () => {
  const transfer = async (at: number, frames: Uint8Array, hash: string): Promise<number> => {
    const target = `/workspaces/ses_${at}/files`;
    expect(await send('PUT', target, frames)).toMatchObject({ status: 200 });
    const hashes = Buffer.from(JSON.stringify({ hashes: [hash] }));
    return (await send('POST', `${target}/read`, hashes)).bytes;
  };
  // what one transfer needs, once
  const small = randomBytes(1_000_000);
  await transfer(TRANSFERS, framesOf(small), sha256Of(small));
  const before = peak();
  const file = randomBytes(limits.workspaceFileBytes);
  const [frames, hash] = [framesOf(file), sha256Of(file)];
  const sizes = await Promise.all(Array.from({ length: TRANSFERS }, (_, at) => transfer(at, frames, hash)));
  expect(sizes).toEqual(sizes.map(() => file.length + FRAME_HEAD_BYTES));
  expect(peak() - before).toBeLessThan((TRANSFERS * limits.workspaceFileBytes) / 2);
});
