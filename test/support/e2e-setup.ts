/**
 * Setup shared by the tests of the whole system: the built Worker, the base images of the runner, and what its files share. On a new machine,
 * building the images takes longer than the start timeout of a test; without a Docker engine none are built.
 */
import { rmSync } from 'node:fs';
import { BASE_NAMES, BaseImages } from '../../container-runner/images/base-images.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { buildWorker } from './built-worker.ts';
import { hostShared } from './shared.ts';

export async function setup(): Promise<() => Promise<void>> {
  const built = await buildWorker(PACKAGE_ROOT);
  process.env['CORTEX_BUILT_WORKER'] = built;
  await buildImages();
  const end = await hostShared();
  return async () => {
    await end();
    rmSync(built, { recursive: true, force: true });
  };
}

async function buildImages(): Promise<void> {
  const socket = process.env['RUNNER_DOCKER'];
  if (socket === undefined) return;
  const images = new BaseImages({ docker: await connectEngine(socket), own: {}, progress: () => undefined });
  for (const name of BASE_NAMES) {
    await images.ensure(name).catch(() => undefined);
  }
}
