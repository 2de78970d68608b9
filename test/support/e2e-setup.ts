/**
 * Setup shared by the tests of the whole system: the built Worker and the base images of the runner. On a new machine,
 * building the images takes longer than the start timeout of a test; without a Docker engine none are built.
 */
import { rmSync } from 'node:fs';
import { BASE_NAMES, BaseImages } from '../../container-runner/images/base-images.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { buildWorker } from './built-worker.ts';

export async function setup(): Promise<() => void> {
  const built = await buildWorker(PACKAGE_ROOT);
  process.env['CORTEX_BUILT_WORKER'] = built;
  await buildImages();
  return () => rmSync(built, { recursive: true, force: true });
}

async function buildImages(): Promise<void> {
  const socket = process.env['RUNNER_DOCKER'];
  if (socket === undefined) return;
  const images = new BaseImages({ docker: await connectEngine(socket), own: {}, progress: () => undefined });
  for (const name of BASE_NAMES) {
    await images.ensure(name).catch(() => undefined);
  }
}
