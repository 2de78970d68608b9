/** Tool images (R3). */
import { Readable } from 'node:stream';

import type Docker from 'dockerode';
import { expect, test } from 'vitest';

import { BaseImages } from '../../images/base-images.ts';
import { leastUsed, ToolImages } from '../../images/tool-images.ts';

test('[R3] past the limit, the images that were unused for the longest time are removed', () => {
  const image = (tag: string, Created: number): { RepoTags: string[]; Created: number } => ({
    RepoTags: [tag],
    Created,
  });
  const images = [image('new', 4), image('old', 1), image('used', 0), image('older', 0.5), image('used-first', 3)];
  const used = new Map([
    ['used-first', 10],
    ['used', 20],
  ]);
  expect(leastUsed(images, used, 5)).toEqual([]);
  expect(leastUsed(images, used, 3)).toEqual(['older', 'old']);
  expect(leastUsed(images, used, 1)).toEqual(['older', 'old', 'new', 'used-first']);
  expect(leastUsed([{ Created: 1 }], new Map(), 0)).toEqual([]);
});

test('[R3] a build does not search the cache of the engine: the removal of another build’s image would break it', async () => {
  const asked: Record<string, unknown>[] = [];
  const docker = {
    getImage: (name: string) => ({
      inspect: async () =>
        await (name.includes('/tool:')
          ? Promise.reject(Object.assign(new Error('none'), { statusCode: 404 }))
          : { Id: 'sha256:1' }),
    }),
    getEvents: async () => await Promise.resolve(Readable.from([])),
    listImages: async () => await Promise.resolve([]),
    listContainers: async () => await Promise.resolve([]),
    buildImage: async (_context: unknown, options: Record<string, unknown>) => {
      asked.push(options);
      return await Promise.resolve(Readable.from([Buffer.from('{"stream":"built"}\n')]));
    },
  } as unknown as Docker;
  const own = { shell: 'own/shell', python3: 'own/python' };
  const images = new ToolImages({
    docker,
    base: new BaseImages({ docker, own, progress: () => undefined }),
    seccomp: '{}',
    labels: {},
    allowed: ['busybox'],
    pipIndex: null,
  });
  const files = { Dockerfile: 'FROM busybox\nRUN true\n' };
  await images.ensure({ base: 'python3', files, entrypoint: '', requirements: [] }, () => undefined);
  expect(asked).toMatchObject([{ nocache: true, networkmode: 'none' }]);
});
