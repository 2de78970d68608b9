/** Eviction of tool images (R3). */
import { expect, test } from 'vitest';

import { leastUsed } from '../../images/tool-images.ts';

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
