/** Relics that die again and again, in real containers (R5): each death takes two containers and up to seconds. */
import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { reasonToSkip } from '../../container-runner/test/support/levels.ts';
import { EVIL, HOARDERS, NARROW, pythonRelic, RelicCaller } from '../../container-runner/test/support/relic-kit.ts';
import { startRunner, type TestRunner } from '../../container-runner/test/support/test-runner.ts';

const skip = reasonToSkip('docker');

describe.skipIf(skip !== null)(`relics that die${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
  let runner: TestRunner;
  let session: RelicCaller;
  beforeAll(async () => {
    runner = await startRunner({ sandbox: 'docker', warm: 0, operatorLimits: NARROW });
    session = new RelicCaller(runner, `ses_${randomUUID()}`);
  });
  afterAll(async () => {
    await session.stop(true);
    await runner.close();
  });

  test('[R5] one that never listens is given up, with what it said', async () => {
    const broken = pythonRelic('print("no port for me")\nraise SystemExit(3)');
    const reply = await session.call('broken', broken, ['GET', '/x']);
    expect(reply.error).toMatchObject({ code: 'relic_unavailable', before_dispatch: true });
    expect(reply.error?.message).toContain('exit code 3');
    expect(reply.error?.message).toContain('no port for me');
  });

  test.each(Object.entries(HOARDERS))(
    '[R5] one that stores too many %s is ended, and later calls report it',
    async (what, { code, words }) => {
      const definition = { ...EVIL, persistent: true };
      const whole = `import os\n${code}\nimport time; time.sleep(600)`;
      const filled = await session.call(what, definition, ['POST', '/', { code: whole }], 120_000);
      expect(filled.error?.code).toBe('relic_broken');
      const reply = await session.call(what, definition, ['GET', '/']);
      expect(reply.error?.message).toContain('its state exceeds a limit');
      expect(reply.error?.message).toContain(words);
    },
  );
});
