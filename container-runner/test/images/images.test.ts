/** Programs in images, and tools built into images, in a real engine (R2, R3, P14). */
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import path from 'node:path';

import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { BaseImages } from '../../images/base-images.ts';
import { OWNER } from '../../sandbox/docker.ts';
import { connectEngine } from '../../sandbox/docker-engine.ts';
import { dockerSocket, reasonToSkip } from '../support/levels.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { packageIndex, WITH_PACKAGE } from '../support/package-index.ts';
import { type JobBody, type Result, type SessionEvent, startRunner, type TestRunner } from '../support/test-runner.ts';

const skip = reasonToSkip('docker');

describe.skipIf(skip !== null)(`images${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
  let runner: TestRunner;
  let docker: Docker;
  const run = (body: JobBody): Promise<Result> => runner.run(body);
  const command = (text: string, more: JobBody = {}): JobBody => ({
    kind: 'docker',
    image: 'busybox',
    command: text,
    ...more,
  });
  const tool = (build: JobBody, more: JobBody = {}): JobBody => ({ kind: 'tool', build, ...more });

  beforeAll(async () => {
    docker = await connectEngine(dockerSocket);
    runner = await startRunner({ sandbox: 'docker', warm: 0, images: ['busybox', 'python', 'node', 'cortex-edge/*'] });
  });
  afterAll(async () => {
    const owner = readFileSync(path.join(runner.stateDir, 'runner', 'instance'), 'utf8');
    await runner.close();
    const left = await docker.listContainers({ all: true, filters: { label: [`${OWNER}=${owner}`] } });
    expect(left).toEqual([]);
  });

  describe.concurrent('a command in an image', () => {
    test('[R2] runs in an image that contains none of the runner’s files', async () => {
      const container = await docker.createContainer({ Image: await shellImage(), Cmd: ['true'] });
      await container.commit({ repo: 'cortex-edge/test', tag: 'bare', changes: 'ENV MARK=7' });
      await container.remove();
      expect(await run(command('echo "$MARK"; id -u; pwd', { image: 'cortex-edge/test:bare' }))).toMatchObject({
        end: 'exited',
        exitCode: 0,
        stdout: '7\n1000\n/work\n',
      });
      // the job's container may still be stopping
      await docker.getImage('cortex-edge/test:bare').remove({ force: true });
    });

    test('[P14] [R3] gets inputs as variables, all inputs in the file, and an empty standard input', async () => {
      const inputs = { text: '$(id) `id` ; id', n: { a: [1] }, PATH: '/tmp', LD_PRELOAD: 'x.so' };
      const { stdout } = await run(
        command('printf "%s|" "$text" "$n" "$PATH" "$LD_PRELOAD"; cat "$CORTEX_INPUTS"; cat; printf "|end"', {
          inputs,
        }),
      );
      const [text, n, path, preload, file = '', end] = stdout.split('|');
      expect([text, n, preload, end]).toEqual([inputs.text, '{"a":[1]}', '', 'end']);
      expect(path).not.toContain('/tmp');
      expect(JSON.parse(file)).toEqual(inputs);
    });

    test('[P14] gets its arguments unchanged', async () => {
      const args = ['a\nb', '$(id)', '; id', '--help', '', "it's", '"q"', '*', '$text'];
      const { stdout } = await run({ kind: 'docker', image: 'python', command: SHOW, args, inputs: { text: 'no' } });
      expect(JSON.parse(stdout)).toEqual(args);
    });

    test('[R2] of a session’s second job uses a container prepared for it, once', async () => {
      const session = randomUUID();
      const once = async (text: string, more: JobBody = {}): Promise<string> => {
        const id = randomUUID();
        await runner.put(id, { session, ...command(text, more) });
        await runner.watch(session, 0, ({ type, job }) => type === 'exited' && job === id);
        return ((await (await runner.ask('GET', `/jobs/${id}`)).json()) as { stdout: string }).stdout;
      };
      const first = await once('touch here; ls; cat /proc/sys/kernel/random/uuid > /tmp/mark; hostname');
      expect(first).toBe('here\nsandbox\n');
      for (const more of [{}, { limits: { memory_mb: 128, disk_mb: 8 } }]) {
        const answer = await runner.ask('POST', '/prewarm', { session, kind: 'docker' });
        expect(await answer.json()).toEqual({ held: true });
        expect(await once('ls; ls /tmp; echo "$x"', { inputs: { x: '$(id)' }, ...more })).toBe('$(id)\n');
      }
    });

    test('[R2] has no network, no privileges and a read-only file system', async () => {
      const probe =
        'touch /x /etc/x /cortex/x 2>&1 | grep -c Read-only; grep -E "^(CapEff|Seccomp|NoNewPrivs):" /proc/self/status; ls /sys; ip addr | grep -c inet';
      const { stdout } = await run(command(probe));
      expect(stdout).toMatch(/CapEff:\s0+\n/);
      expect(stdout).toMatch(/NoNewPrivs:\s1/);
      expect(stdout).toMatch(/Seccomp:\s2/);
      expect(stdout).toMatch(/^2\n/);
      expect(stdout).not.toContain('kernel');
    });

    test('[R4] reports exit code, timeout, memory and kill separately', async () => {
      const [failed, slow, big] = await Promise.all([
        run(command('exit 9')),
        run(command('sleep 60', { limits: { timeout_ms: 500 } })),
        run(command('tail /dev/zero', { limits: { memory_mb: 64 } })),
      ]);
      expect(failed).toMatchObject({ end: 'exited', exitCode: 9 });
      expect(slow).toMatchObject({ end: 'timeout', exitCode: null });
      expect(big).toMatchObject({ end: 'oom' });
    });

    test('[R2] is refused with the allowed images if its image is not allowed', async () => {
      const answer = await runner.put(randomUUID(), { session: 's', ...command('id', { image: 'alpine:3' }) });
      expect(answer.status).toBe(422);
      expect(await answer.text()).toContain('allowed: busybox, python, node, cortex-edge/*');
    });

    test('[R2] is refused if its image does not exist; images are not pulled', async () => {
      const result = await run(command('id', { image: 'cortex-edge/absent:1' }));
      expect(result).toMatchObject({ end: 'exited', exitCode: 126 });
      expect(result.stderr).toContain('the image cortex-edge/absent:1 is missing in the engine');
    });

    test('[R2] is not found by a part of its id, which could be an image of another namespace', async () => {
      const secret = randomUUID();
      const build = { files: { 'main.sh': `echo ${secret}` }, entrypoint: 'main.sh', base: 'shell' };
      await runner.put(secret, { session: secret, ...tool(build) });
      const events = await runner.watch(secret, 0, ({ type }) => type === 'exited');
      const said = events.map(({ data }) => String(data['text'] ?? '')).join('');
      expect(said).toContain(`${secret}\n`);
      const [, built = ''] = /^building (cortex-edge\/tool:[0-9a-f]+)$/m.exec(said) ?? [];
      const { Id: id } = await docker.getImage(built).inspect();
      const digits = id.replace('sha256:', '');
      const names = [digits, digits.slice(0, 9), id, id.slice(0, 19), `cortex-edge/tool:${digits.slice(0, 9)}`];
      // an operator that allows every image
      const open = await startRunner({ sandbox: 'docker', warm: 0, images: ['*'] });
      try {
        for (const image of names) {
          const result = await open.run(command('cat /app/main.sh', { image }));
          expect(result).toMatchObject({ end: 'exited', exitCode: 126, stdout: '' });
          expect(result.stderr).toContain(`the image ${image} is missing in the engine`);
        }
      } finally {
        await open.close();
      }
    });

    test('[R2] does not run at a weaker level', async () => {
      for (const sandbox of ['wasm', 'bubblewrap']) {
        const answer = await runner.put(randomUUID(), { session: 's', sandbox, ...command('id') });
        expect(answer.status).toBe(422);
      }
      const without = await startRunner({ dockerSocket: 'off', warm: 0 });
      try {
        const answer = await without.put('a', { session: 's', ...command('id') });
        expect(answer.status).toBe(422);
        expect(await answer.text()).toContain('docker: disabled');
      } finally {
        await without.close();
      }
    });
  });

  describe.concurrent('a tool that is built into an image', () => {
    const main = `
import json, os, sys, helper
with open(os.environ["CORTEX_INPUTS"]) as file:
    print(json.dumps([helper.double(json.loads(sys.argv[1])["n"]), json.load(sys.stdin), json.load(file)]))`;
    const files = { 'main.py': main, 'helper.py': 'def double(n): return 2 * n\n', 'data/x.txt': 'x' };

    test('[R3] has its files, and its input in argv, on stdin and in the file', async () => {
      const { stdout, stderr } = await run(tool({ files, entrypoint: 'main.py' }, { inputs: { n: 21 } }));
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual([42, { n: 21 }, { n: 21 }]);
    });

    test('[R3] is built once for concurrent and later jobs with the same content, and its log is streamed during the build', async () => {
      const build = { files: { 'main.sh': `echo ${randomUUID()}` }, entrypoint: 'main.sh', base: 'shell' };
      const eventsOf = async (n: number): Promise<SessionEvent[]> => {
        const session = randomUUID();
        await runner.put(session, { session, ...tool(build, { inputs: { n } }) });
        return await runner.watch(session, 0, ({ type }) => type === 'exited');
      };
      const both = await Promise.all([1, 2].map(eventsOf));
      const later = await eventsOf(3);
      const texts = (events: readonly SessionEvent[], wanted: string): string =>
        events
          .filter(({ type }) => type === wanted)
          .map(({ data }) => String(data['text']))
          .join('');
      const built = both.find((events) => texts(events, 'build').startsWith('building ')) ?? [];
      expect(built.map(({ type }) => type).indexOf('build')).toBe(1);
      expect(texts(built, 'build')).toMatch(/^building cortex-edge\/tool:[0-9a-f]{24}\nbuilt /);
      expect(texts(both.flat(), 'build').match(/^building /gm)).toHaveLength(1);
      expect(texts(later, 'build')).toBe('');
      expect([...both, later].map((events) => events.at(-1)?.data['exit_code'])).toEqual([0, 0, 0]);
      expect(new Set([...both, later].map((events) => texts(events, 'stdout'))).size).toBe(1);
    });

    test('[R3] can use node and shell too', async () => {
      const node = { base: 'node', files: { 'a/b.js': 'console.log(process.argv[2])' }, entrypoint: 'a/b.js' };
      expect((await run(tool(node, { inputs: { a: 1 } }))).stdout).toBe('{"a":1}\n');
      const shell = { base: 'shell', files: { 'main.sh': 'cat; exit 3' }, entrypoint: 'main.sh' };
      expect(await run(tool(shell, { inputs: { a: 1 } }))).toMatchObject({ stdout: '{"a":1}', exitCode: 3 });
    });

    test('[R3] builds its Dockerfile without a network', async () => {
      const dockerfile = `FROM python AS first
RUN python3 -c "print(6 * 7)" > /answer
FROM busybox
COPY --from=first /answer /answer
COPY say.sh /say.sh
RUN ! wget -T 2 -q -O - http://1.1.1.1/
ENTRYPOINT ["sh", "/say.sh"]
`;
      const build = { files: { Dockerfile: dockerfile, 'say.sh': 'cat /answer; echo "$1"' } };
      expect(await run(tool(build, { inputs: { a: 1 } }))).toMatchObject({
        end: 'exited',
        exitCode: 0,
        stdout: '42\n{"a":1}\n',
      });
    });

    test('[R2] has the volumes of its image in memory, not on the disk of the machine', async () => {
      const dockerfile = `FROM busybox
RUN mkdir -p /data /deep/er && chmod 777 /data /deep/er && echo kept > /data/kept
VOLUME /data /tmp /deep/er
HEALTHCHECK --interval=1s CMD touch /data/checked
ENTRYPOINT ["sh", "-c", "sleep 2; ls /data; grep -E ' (/data|/tmp|/deep/er) ' /proc/mounts | cut -d ' ' -f 2,3 | sort; head -c 100000000 /dev/zero > /data/big || echo full"]
`;
      const { stdout } = await run(tool({ files: { Dockerfile: dockerfile } }));
      expect(stdout).toBe('/data tmpfs\n/deep/er tmpfs\n/tmp tmpfs\nfull\n');
    });

    /** Images and containers that builds with `LABEL test=<mark>` have left in the engine, which other files share. */
    async function traces(mark: string): Promise<number> {
      const filters = { label: [`test=${mark}`] };
      const images = await docker.listImages({ all: true, filters });
      const containers = await docker.listContainers({ all: true, filters });
      return images.length + containers.length;
    }

    test('[R2] a build that writes too much ends, and its remains are removed', async () => {
      const mark = randomUUID();
      const dockerfile = `FROM busybox
LABEL test=${mark}
RUN fallocate -l 600000000 /all; sleep 609
`;
      const result = await run(tool({ files: { Dockerfile: dockerfile } }));
      expect(result).toMatchObject({ end: 'build_failed' });
      expect(result.stderr).toContain(`it wrote more than ${limits.buildResources.diskMb} MiB`);
      await eventually(async () => expect(await traces(mark)).toBe(0));
    });

    test('[R2] the number of processes of a build step is limited', async () => {
      const most = limits.buildResources.processes;
      const dockerfile = `FROM busybox
RUN echo ${randomUUID()}; sleep 1; i=0; while [ $i -lt ${most + 32} ]; do sleep 3 & i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l > /count; true
ENTRYPOINT ["sh", "-c", "cat /count"]
`;
      const result = await run(tool({ files: { Dockerfile: dockerfile } }));
      // a shell that cannot fork ends, and the build with it
      if (result.end === 'exited') expect(Number(result.stdout)).toBeLessThanOrEqual(most);
      else expect(result.stderr).toMatch(/can't fork|Resource temporarily unavailable/);
    });

    test('[R3] a failed build leaves no image, and a successful one no intermediate stage', async () => {
      const mark = randomUUID();
      const failing = `FROM busybox AS a
LABEL test=${mark}
RUN echo ${mark} > /x
FROM busybox
LABEL test=${mark}
COPY --from=a /x /x
RUN exit 3
`;
      expect(await run(tool({ files: { Dockerfile: failing } }))).toMatchObject({ end: 'build_failed' });
      await eventually(async () => expect(await traces(mark)).toBe(0));
      const good = failing.replace('RUN exit 3', 'LABEL cortex-edge.build=forged\nENTRYPOINT ["sh", "-c", "cat /x"]');
      expect(await run(tool({ files: { Dockerfile: good } }))).toMatchObject({ end: 'exited', exitCode: 0 });
      const marks = (await docker.listImages({ all: true })).map(({ Labels: labels }) => labels?.['cortex-edge.build']);
      expect(marks).not.toContain('forged');
    });

    test.each([
      ['a step that fails', 'FROM busybox\nRUN echo before && exit 3\n', ['non-zero code: 3', 'before']],
      [
        'an image that does not exist',
        'FROM cortex-edge/absent:1\n',
        ['cortex-edge/absent:1 is missing in the engine'],
      ],
      ['an image that is not allowed', 'FROM alpine:3\n', ['does not allow the image alpine:3']],
      ['an unknown instruction', 'FROM busybox\nNONSENSE\n', ['NONSENSE']],
    ])('[R3] %s: build_failed with the message of the builder', async (_name, dockerfile, said) => {
      const result = await run(tool({ files: { Dockerfile: dockerfile } }));
      expect(result).toMatchObject({ end: 'build_failed', exitCode: null, stdout: '' });
      for (const words of said) expect(result.stderr).toContain(words);
    });

    test('[R3] packages come from the operator’s index; a missing package is build_failed', async () => {
      const index = await packageIndex(docker);
      const narrow = await startRunner({ sandbox: 'docker', warm: 0, pipIndex: index.url });
      try {
        const good = await narrow.run(tool({ files: WITH_PACKAGE }));
        expect(good).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'hello\n' });
        const files = { 'main.py': 'import tiny' };
        const bad = await narrow.run(tool({ files, entrypoint: 'main.py', requirements: ['tiny==2.0'] }));
        expect(bad).toMatchObject({ end: 'build_failed', stdout: '' });
        expect(bad.stderr).toContain('pip could not install tiny==2.0');
        expect(bad.stderr).toContain('No matching distribution found for tiny==2.0');
      } finally {
        await narrow.close();
        index.server.close();
      }
    });
  });

  describe('tests that inspect all containers, one after the other', () => {
    test.each([
      ['an image', 'docker', command('echo hello')],
      ['an interpreter', 'python', { kind: 'python', code: 'print("hello")' }],
    ])('[R2] a dead reserved sandbox of %s does not affect the job', async (_name, kind, body) => {
      const session = `ses_held_${kind}`;
      const filters = {
        label: [
          `${OWNER}=${readFileSync(path.join(runner.stateDir, 'runner', 'instance'), 'utf8')}`,
          'cortex-edge=job',
        ],
      };
      async function runIt(id: string): Promise<unknown> {
        await runner.put(id, { session, ...body });
        return await eventually(async () => {
          const record = (await (await runner.ask('GET', `/jobs/${id}`)).json()) as { readonly state: string };
          expect(record.state).toBe('ended');
          return record;
        });
      }
      // an image is reserved from its first use on
      if (kind === 'docker') expect(await runIt(`${session}_1`)).toMatchObject({ stdout: 'hello\n' });
      const before = new Set((await docker.listContainers({ all: true, filters })).map(({ Id }) => Id));
      expect(await (await runner.ask('POST', '/prewarm', { session, kind })).json()).toEqual({ held: true });
      const held = await eventually(async () => {
        const found = (await docker.listContainers({ filters })).find(({ Id }) => !before.has(Id));
        if (found === undefined) throw new Error('nothing is held yet');
        return docker.getContainer(found.Id);
      });
      await held.kill();
      await eventually(() => expect(held.inspect()).rejects.toThrow());
      expect(await runIt(`${session}_2`)).toMatchObject({ end: 'exited', exit_code: 0, stdout: 'hello\n' });
    });

    test('[R3] a build with too much output ends, and so does its log', async () => {
      const build = {
        files: { Dockerfile: `FROM busybox\nRUN echo ${randomUUID()}; yes "a longer line of the log"\n` },
      };
      const session = randomUUID();
      await runner.put(session, { session, ...tool(build) });
      const events = await runner.watch(session, 0, ({ type }) => type === 'exited');
      expect(events.at(-1)?.data).toMatchObject({ end: 'build_failed' });
      const told = events.filter(({ type }) => type === 'build').map(({ data }) => String(data['text']));
      expect(Buffer.byteLength(told.join(''))).toBeLessThanOrEqual(limits.buildLogBytes);
      expect(events.find(({ type }) => type === 'stderr')?.data['text']).toContain(
        `exceeded ${limits.buildLogBytes} bytes`,
      );
      // the builder has stopped too
      await eventually(async () => expect(await buildersOf(docker)).toEqual([]));
    });

    test('[R3] a build ends when its last waiting job is cancelled', async () => {
      const build = { files: { Dockerfile: `FROM busybox\nRUN echo ${randomUUID()}; sleep 607\n` } };
      for (const id of ['left-1', 'left-2']) await runner.put(id, { session: 'ses_left', ...tool(build) });
      await eventually(async () => expect((await buildersOf(docker)).length).toBe(1));
      await runner.ask('DELETE', '/jobs/left-1');
      await eventually(async () =>
        expect(await (await runner.ask('GET', '/jobs/left-1')).json()).toMatchObject({ end: 'killed' }),
      );
      expect((await buildersOf(docker)).length).toBe(1);
      await runner.ask('DELETE', '/jobs/left-2');
      await eventually(async () => expect(await buildersOf(docker)).toEqual([]));
    });

    test('[R3] a runner that stops ends its builds', async () => {
      const second = await startRunner({ sandbox: 'docker', warm: 0 });
      const build = { files: { Dockerfile: `FROM busybox\nRUN echo ${randomUUID()}; sleep 607\n` } };
      const session = randomUUID();
      await second.put(session, { session, ...tool(build) });
      await eventually(async () => expect((await buildersOf(docker)).length).toBe(1));
      await second.close();
      await eventually(async () => expect(await buildersOf(docker)).toEqual([]));
    });
  });

  async function shellImage(): Promise<string> {
    return await new BaseImages({ docker, own: {}, progress: () => undefined }).ensure('shell');
  }
});

/** Running build steps: containers of the engine without the runner's label. */
async function buildersOf(docker: Docker): Promise<string[]> {
  const all = await docker.listContainers();
  return all.filter(({ Command: command }) => /sleep 607|yes "a longer/.test(command)).map(({ Id: id }) => id);
}

const SHOW = 'python3 -c "import json, sys; print(json.dumps(sys.argv[1:]))"';
