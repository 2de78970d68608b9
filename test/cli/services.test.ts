/** Services of `cortex dev`: what is printed of their output (K4). */
import { afterEach, expect, test, vi } from 'vitest';
import { startService, stopService } from '../../cli/system/services.ts';

afterEach(() => vi.restoreAllMocks());

/** Says something when it starts, and when it is told to end. */
const PROGRAM = `
const life = setInterval(() => undefined, 1_000);
process.on('SIGTERM', () => {
  console.error('error: late');
  clearInterval(life);
});
console.error('error: early');
`;

test('[K4] what a service complains about while it is stopped is kept, and not printed', async () => {
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const service = startService('a', process.execPath, ['-e', PROGRAM], {
    cwd: process.cwd(),
    env: { PATH: process.env['PATH'] },
    echo: (line) => line.includes('error'),
  });
  await expect.poll(() => service.tail.join()).toContain('error: early');
  await stopService(service);
  await expect.poll(() => service.tail.join()).toContain('error: late');
  expect(printed.mock.calls).toEqual([['[a] error: early']]);
});
