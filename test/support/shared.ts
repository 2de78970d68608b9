/** What the files of the tests of the whole system share (shared-host.ts). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const HOST = 'CORTEX_TEST_SHARED';

/** For a global setup: starts the process that has the shared parts. @returns ends it */
export async function hostShared(): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('shared-host.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [address] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(() => {
      throw new Error('The process of the shared parts ended at its start');
    }),
  ])) as [string];
  process.env[HOST] = address;
  return async () => {
    const exited = once(child, 'exit');
    child.stdin.end();
    await exited;
  };
}

/** Starts the part, unless another file has. @returns its address */
export async function sharedPart(name: 'system' | 'chromium'): Promise<string> {
  const response = await fetch(`${process.env[HOST] ?? ''}/${name}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`The shared ${name} did not start: ${text}`);
  return text;
}
