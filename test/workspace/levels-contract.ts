/**
 * The contract of the workspace with a real session and real runners, the same at every sandbox level (C7): programs share
 * files, whatever interpreter, runner or host they have. What is decided above the levels is asserted at one of them.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SandboxLevel } from '../../container-runner/sandbox/sandbox.ts';
import { dockerSocket, reasonToSkip } from '../../container-runner/test/support/levels.ts';
import { SECRET, startRunner } from '../../container-runner/test/support/test-runner.ts';
import type { TestRunner } from '../../container-runner/test/support/test-runner.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { RunnerClient } from '../../src/domain/ports/runner.ts';
import { createRunnerClient } from '../../src/executors/runner/client.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import type { RunResult } from '../../src/view/result.ts';
import { runText, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';

const realClock: Clock = {
  now: Date.now,
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

interface Wire {
  /** The origin of the runner, for each file that was sent to one. */
  readonly withFiles: readonly string[];
  readonly client: RunnerClient;
}

function wireTo(...runners: readonly TestRunner[]): Wire {
  const origins: string[] = [];
  const client = createRunnerPool({
    runners: runners.map(({ url }) => ({ url, labels: [] })),
    connect: (baseUrl) =>
      createRunnerClient({
        baseUrl,
        key: { id: null, secret: SECRET },
        fetch: async (input, init) => {
          const { pathname, origin } = new URL(input);
          const request = `${init.method ?? 'GET'} ${pathname.split('/').filter(isName).join('/')}`;
          if (request === 'PUT workspaces/files') origins.push(origin);
          return await fetch(input, init);
        },
        clock: realClock,
        newNonce: () => randomUUID(),
      }),
    clock: realClock,
  });
  return { withFiles: origins, client: named(client, randomUUID().slice(0, 8)) };
}

/** All sessions of these tests have one id, and runners run a job id once. */
function named(client: RunnerClient, name: string): RunnerClient {
  const own = <T extends { readonly id: string; readonly session: string }>(job: T): T => ({
    ...job,
    id: `${name}/${job.id}`,
    session: `${name}_${job.session}`,
  });
  return {
    ...client,
    run: (job, observe) => client.run(own(job), observe),
    lookup: (job, observe) => client.lookup(own(job), observe),
  };
}

/** Ids of jobs and sessions are left out. */
function isName(segment: string): boolean {
  return /^[a-z]+$/.test(segment);
}

const action = (type: 'python' | 'shell', id: string, code: string, more: object = {}): string => {
  const parameters = type === 'python' ? { code } : { command: code };
  return `<action type="${type}" mode="async" id="${id}">${JSON.stringify({ parameters, timeout: 60, ...more })}</action>`;
};

const answer = (...ids: readonly string[]): string =>
  `<response final="true">${ids.map((id) => `${id}: $${id}`).join('\n')}</response>`;

async function textOf({ session }: SessionKit, path: string): Promise<string | null> {
  const file = session.workspace.file(path);
  const bytes = file === null ? null : await session.workspace.read(file.sha256);
  return bytes === null ? null : new TextDecoder().decode(bytes);
}

const paths = ({ session }: SessionKit): string[] => session.workspace.list().map(({ path }) => path);

const warnings = ({ events }: SessionKit): string[] =>
  events
    .flatMap((event: SessionEvent) => (event.type === 'warning' ? [event.data.code] : []))
    .filter((code) => code.startsWith('workspace_'));

const errorsOf = ({ actions }: RunResult): unknown[] => actions.map(({ error }) => error?.code ?? null);

/** The level that starts fastest. */
const FIRST: SandboxLevel = 'bubblewrap';

export function describeWorkspace(level: SandboxLevel): void {
  const skip = reasonToSkip(level);
  describe.skipIf(skip !== null)(`[C7] the workspace at the level ${level}${skip === null ? '' : ` (${skip})`}`, () => {
    let runner: TestRunner;
    beforeAll(async () => {
      runner = await startRunner({ sandbox: level, dockerSocket: level === 'docker' ? dockerSocket : 'off' });
    });
    afterAll(async () => await runner.close());

    const kitWith = async (wire: Wire): Promise<SessionKit> => await sessionKit({ runner: wire.client });

    test('python writes a table, a shell reads it, and the next run finds both', async () => {
      const kit = await kitWith(wireTo(runner));
      const first = await runText(
        kit,
        action(
          'python',
          'write',
          'import csv\nwith open("data.csv", "w") as f: csv.writer(f).writerows([[1, 2], [3, 4]])',
        ),
        action('shell', 'count', 'mkdir -p out && wc -l < data.csv > out/lines.txt && pwd && cat out/lines.txt', {
          depends_on: ['write'],
        }),
        answer('count'),
      );
      expect(errorsOf(first)).toEqual([null, null]);
      expect(first.response.replaceAll(/\s+/g, ' ')).toContain('/workspace 2');
      expect(paths(kit)).toEqual(['data.csv', 'out/lines.txt']);
      expect((await textOf(kit, 'data.csv'))?.replaceAll('\r', '')).toBe('1,2\n3,4\n');
      const second = await runText(
        kit,
        action('python', 'read', 'import os\nprint(sorted(os.listdir(".")), os.environ["CORTEX_WORKSPACE"])'),
        answer('read'),
      );
      expect(second.response).toContain("['data.csv', 'out'] /workspace");
      expect(kit.faults).toEqual([]);
    });

    test('an exit code keeps the files, a timeout does not', async () => {
      const kit = await kitWith(wireTo(runner));
      const result = await runText(
        kit,
        action('python', 'exits', 'import sys\nopen("kept.txt", "w").write("1")\nsys.exit(3)'),
        action('python', 'hangs', 'open("lost.txt", "w").write("1")\nwhile True: pass', { timeout: 2 }),
        answer('exits'),
      );
      expect(errorsOf(result)).toEqual(['nonzero_exit', 'timeout']);
      expect(paths(kit)).toEqual(['kept.txt']);
    });

    // The rest is decided at the border of the runner: workspace-contract.ts tries files of all kinds at each level.
    if (level !== FIRST) return;

    test('a file that a person writes is there, one that a program deletes is gone, and a program stays executable', async () => {
      const kit = await kitWith(wireTo(runner));
      await kit.session.workspace.write([
        { path: 'old.txt', bytes: new TextEncoder().encode('old') },
        { path: 'bin/greet.sh', bytes: new TextEncoder().encode('echo "hello $1"\n'), executable: true },
        { path: 'ünïcode 表.txt', bytes: new TextEncoder().encode('✓') },
      ]);
      const { response } = await runText(
        kit,
        action('shell', 'a', 'rm old.txt && test -x bin/greet.sh && cat "ünïcode 表.txt" && sh bin/greet.sh you'),
        answer('a'),
      );
      expect(response).toContain('✓hello you');
      expect(paths(kit)).toEqual(['bin/greet.sh', 'ünïcode 表.txt']);
      expect(kit.session.workspace.file('bin/greet.sh')?.executable).toBe(true);
    });

    test('links are left out with a warning', async () => {
      const kit = await kitWith(wireTo(runner));
      const result = await runText(
        kit,
        action('python', 'link', 'import os\nos.symlink("/etc/passwd", "link")\nopen("x.txt", "w").write("1")'),
        answer('link'),
      );
      expect(errorsOf(result)).toEqual([null]);
      expect(paths(kit)).toEqual(['x.txt']);
      expect(warnings(kit)).toEqual(['workspace_skipped']);
    });

    test('10 MB go in and come back', async () => {
      const kit = await kitWith(wireTo(runner));
      const bytes = new Uint8Array(10_485_760).map((_, at) => (at * 31) % 253);
      await kit.session.workspace.write([{ path: 'large.bin', bytes }]);
      const { response } = await runText(
        kit,
        action(
          'python',
          'a',
          'data = open("large.bin", "rb").read()\nopen("copy.bin", "wb").write(data[::-1])\nprint(len(data))',
        ),
        answer('a'),
      );
      expect(response).toContain('10485760');
      const copy = await kit.session.workspace.read(kit.session.workspace.file('copy.bin')?.sha256 ?? '');
      expect(Buffer.from(copy ?? []).equals(Buffer.from(bytes.toReversed()))).toBe(true);
    });

    test('parallel writers are merged; of one path, the last one counts, with a warning', async () => {
      const kit = await kitWith(wireTo(runner));
      await runText(
        kit,
        action('python', 'quick', 'open("shared.txt", "w").write("quick"); open("quick.txt", "w").write("1")'),
        action(
          'python',
          'slow',
          'import time\ntime.sleep(3)\nopen("shared.txt", "w").write("slow"); open("slow.txt", "w").write("1")',
        ),
        answer('quick', 'slow'),
      );
      expect(paths(kit)).toEqual(['quick.txt', 'shared.txt', 'slow.txt']);
      expect(await textOf(kit, 'shared.txt')).toBe('slow');
      expect(warnings(kit)).toEqual(['workspace_conflict']);
    });

    test('too many files fail the action', async () => {
      const kit = await kitWith(wireTo(runner));
      const many = action('python', 'many', 'for n in range(2500): open(f"many-{n}", "w").close()');
      expect(errorsOf(await runText(kit, many, answer('many')))).toEqual(['workspace_full']);
      expect(paths(kit)).toEqual([]);
    });

    test('a runner gets a file once; one that replaces it, with an empty cache, gets it again', async () => {
      const start = async (): Promise<TestRunner> =>
        await startRunner({ sandbox: level, dockerSocket: level === 'docker' ? dockerSocket : 'off' });
      const runners = [await start(), await start()];
      const wire = wireTo(...runners);
      const kit = await kitWith(wire);
      await kit.session.workspace.write([{ path: 'x.txt', bytes: new TextEncoder().encode('kept') }]);
      const read = action('shell', 'a', 'cat x.txt');
      await runText(kit, read, answer('a'));
      const first = [...wire.withFiles];
      expect(first).toHaveLength(1);
      await runText(kit, read, answer('a'));
      expect(wire.withFiles).toEqual(first);
      // Either of the two may have been chosen.
      await runners.find(({ url }) => first.includes(new URL(url).origin))?.close();
      expect((await runText(kit, read, answer('a'))).response).toContain('kept');
      expect(new Set(wire.withFiles)).toEqual(new Set(runners.map(({ url }) => new URL(url).origin)));
      await runners.find(({ url }) => !first.includes(new URL(url).origin))?.close();
    });
  });
}
