/** Selects where relics run on this machine, or explains why they cannot. */
import type { Logger } from 'pino';

import { DEFAULT_OPERATOR_LIMITS } from '../operator-limits.ts';
import { BaseImages } from '../images/base-images.ts';
import { ToolImages } from '../images/tool-images.ts';
import type { RunnerConfig } from '../config.ts';
import { identityOf, OWNER } from '../sandbox/docker.ts';
import { connectEngine, LABEL, messageOf } from '../sandbox/docker-engine.ts';
import { seccompProfile } from '../sandbox/seccomp.ts';
import type { StateFolder } from '../state.ts';
import { DockerRelicHost } from './docker-host.ts';
import type { RelicClock } from './relic.ts';
import { Relics } from './relics.ts';
import type { RelicHost } from './relic-service.ts';

type Settings = Pick<
  RunnerConfig,
  'operatorLimits' | 'dockerSocket' | 'sandbox' | 'baseImages' | 'images' | 'pipIndex'
>;

const systemClock: RelicClock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** @param given a host of the caller, instead of Docker */
export async function openRelics(
  settings: Settings,
  state: StateFolder,
  log: Logger,
  given?: RelicHost,
): Promise<Relics> {
  const common = { clock: systemClock, log, operatorLimits: settings.operatorLimits ?? DEFAULT_OPERATOR_LIMITS };
  if (given !== undefined) return new Relics({ ...common, host: given, absence: '' });
  try {
    const host = await dockerHost(settings, state, log);
    await host.open();
    return new Relics({ ...common, host, absence: '' });
  } catch (fault) {
    return new Relics({ ...common, host: null, absence: messageOf(fault) });
  }
}

/** @throws Error with a message for users if relics cannot run in containers */
async function dockerHost(settings: Settings, state: StateFolder, log: Logger): Promise<DockerRelicHost> {
  const { dockerSocket, sandbox, baseImages, images: allowed, pipIndex } = settings;
  if (dockerSocket === 'off') throw new Error('the Docker engine is disabled (RUNNER_DOCKER=off)');
  if (sandbox !== null && sandbox !== 'docker') throw new Error(`the operator allows only the sandbox ${sandbox}`);
  const seccomp = seccompProfile(process.arch);
  if (seccomp === null) throw new Error(`there is no system call filter for ${process.arch}`);
  const docker = await connectEngine(dockerSocket);
  const say = (message: string): void => log.info(message);
  const images = new BaseImages({ docker, own: baseImages, progress: say });
  await images.ensure('python3');
  const owner = await identityOf(state);
  const stateBytes = (settings.operatorLimits ?? DEFAULT_OPERATOR_LIMITS).diskMb * 1_048_576;
  const labels = { [LABEL]: 'build', [OWNER]: owner };
  const built = new ToolImages({ docker, base: images, seccomp, labels, allowed, pipIndex });
  return new DockerRelicHost({
    docker,
    images,
    built,
    allowed,
    seccomp,
    owner,
    ownerLabel: OWNER,
    log: say,
    stateBytes,
  });
}
