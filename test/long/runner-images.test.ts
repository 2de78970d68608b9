/** Builds of images whose mechanisms `images.test.ts` asserts with less (R2, R3). */
import { randomUUID } from 'node:crypto';

import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { limits } from '../../container-runner/limits.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';
import { dockerSocket, reasonToSkip } from '../../container-runner/test/support/levels.ts';
import { packageIndex } from '../../container-runner/test/support/package-index.ts';
import { startRunner, type TestRunner } from '../../container-runner/test/support/test-runner.ts';

const skip = reasonToSkip('docker');

describe.skipIf(skip !== null)(`builds of images${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
  let docker: Docker;
  let runner: TestRunner;
  let index: Awaited<ReturnType<typeof packageIndex>>;
  beforeAll(async () => {
    docker = await connectEngine(dockerSocket);
    index = await packageIndex(docker);
    runner = await startRunner({ sandbox: 'docker', warm: 0, pipIndex: index.url });
  });
  afterAll(async () => {
    await runner.close();
    index.server.close();
  });

  test('[R3] the requirements of a tool come from the operator’s index', async () => {
    const files = { 'main.py': `import tiny; print(tiny.word, "${randomUUID()}")` };
    const build = { entrypoint: 'main.py', files, requirements: ['tiny==1.0'] };
    const { stdout, stderr } = await runner.run({ kind: 'tool', build });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^hello /);
  });

  test('[R2] what all steps of a build write counts together', async () => {
    const dockerfile = `FROM busybox
RUN echo ${randomUUID()}; fallocate -l 60000000 /first
RUN fallocate -l 540000000 /second; sleep 609
`;
    const { end, stderr } = await runner.run({ kind: 'tool', build: { files: { Dockerfile: dockerfile } } });
    expect(end).toBe('build_failed');
    expect(stderr).toContain(`it wrote more than ${limits.buildResources.diskMb} MiB`);
  });
});
