/** What the host of container relics asks of the engine, and in which order (R5). The engine is a fake one. */
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';

import { BaseImages } from '../../images/base-images.ts';
import { ToolImages } from '../../images/tool-images.ts';
import { relicDefinition } from '../../relics/definition.ts';
import { DockerRelicHost } from '../../relics/docker-host.ts';

const id = { scope: 'ses_1', name: 'r' };
const spec = relicDefinition.parse({ image: 'team/a', port: 80, health: { path: '/' }, persistent: true });
const refused = (statusCode: number): Promise<never> =>
  Promise.reject(Object.assign(new Error(`status ${statusCode}`), { statusCode }));

/** An engine that has images, networks and volumes, but starts no containers. */
class FakeEngine {
  readonly asked: string[] = [];
  hasImage = true;
  hasNetwork = false;
  leaving: Promise<void> = Promise.resolve();

  readonly docker = {
    getImage: () => ({
      inspect: () => (this.hasImage ? Promise.resolve({ Id: 'sha256:1', RepoTags: [] }) : refused(404)),
    }),
    createNetwork: () => {
      this.asked.push('create the network');
      if (this.hasNetwork) return refused(409);
      this.hasNetwork = true;
      return Promise.resolve({});
    },
    getNetwork: () => ({
      remove: async () => {
        this.asked.push('remove the network');
        await this.leaving;
        this.hasNetwork = false;
      },
    }),
    getVolume: () => ({ inspect: () => refused(404), remove: () => Promise.resolve() }),
    listVolumes: () => Promise.resolve({ Volumes: [] }),
    createVolume: () => {
      this.asked.push('create the volume');
      return Promise.resolve({});
    },
    createContainer: () =>
      Promise.resolve({
        attach: () => (this.hasNetwork ? Promise.reject(new Error('it starts no containers')) : refused(404)),
        remove: () => Promise.resolve(),
      }),
  } as unknown as Docker;
}

function hostOf({ docker }: FakeEngine): DockerRelicHost {
  const own = { python3: 'team/python', shell: 'team/shell' };
  const images = new BaseImages({ docker, own, progress: () => undefined });
  const common = { docker, allowed: ['*'], seccomp: '{}' };
  const built = new ToolImages({ ...common, base: images, labels: {}, pipIndex: null });
  const owner = { owner: 'runner', ownerLabel: 'runner', log: () => undefined, stateBytes: 1 };
  return new DockerRelicHost({ ...common, ...owner, images, built });
}

describe('the host of container relics', () => {
  test('[R5] creates the network of a scope again only after it is removed', async () => {
    const engine = new FakeEngine();
    const host = hostOf(engine);
    const once = { ...spec, persistent: false };
    await expect(host.start(id, once, null)).rejects.toThrow('starts no containers');
    const removal = Promise.withResolvers<void>();
    engine.leaving = removal.promise;
    const left = host.leave(id.scope);
    const next = host.start(id, once, null).catch(String);
    setTimeout(removal.resolve, 20);
    await left;
    expect(await next).toContain('starts no containers');
    expect(engine.asked).toEqual(['create the network', 'remove the network', 'create the network']);
  });

  test('[R5] creates a network again that the operator has removed', async () => {
    const engine = new FakeEngine();
    const host = hostOf(engine);
    const once = { ...spec, persistent: false };
    await expect(host.start(id, once, null)).rejects.toThrow('starts no containers');
    engine.hasNetwork = false;
    await expect(host.start(id, once, null)).rejects.toThrow('status 404');
    await expect(host.start(id, once, null)).rejects.toThrow('starts no containers');
  });

  test('[R5] creates no state for a relic whose image is missing', async () => {
    const engine = new FakeEngine();
    engine.hasImage = false;
    await expect(hostOf(engine).start(id, spec, null)).rejects.toThrow('missing');
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    expect(engine.asked).toEqual([]);
  });
});
