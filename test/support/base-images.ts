/**
 * Builds the base images of the runner before any test of the whole system: on a fresh machine that takes longer than a
 * start may take in a test. Without a Docker engine there is nothing to do.
 */
import { BASE_NAMES, BaseImages } from '../../container-runner/images/base-images.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';

export async function setup(): Promise<void> {
  const socket = process.env['RUNNER_DOCKER'];
  if (socket === undefined) return;
  const images = new BaseImages({ docker: await connectEngine(socket), own: {}, progress: () => undefined });
  for (const name of BASE_NAMES) {
    // oxlint-disable-next-line no-await-in-loop -- each may take all of the machine
    await images.ensure(name).catch(() => undefined);
  }
}
