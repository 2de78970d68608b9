/** The progress of image builds in `npm start` (R3). */
import { expect, test } from 'vitest';

import { imageProgress } from '../../cli/system/start-progress.ts';

const health = (...images: [string, string, number][]): object => ({
  status: 'starting',
  starting: { images: images.map(([name, state, seconds]) => ({ name, state, elapsed_ms: seconds * 1_000 })) },
});

test('[R3] each image is reported when its build starts, every few seconds, and when it is built', () => {
  const lines: string[] = [];
  const tell = imageProgress((line) => lines.push(line));
  tell(null);
  tell({ status: 'starting' });
  tell(health(['python3', 'waiting', 0], ['shell', 'waiting', 0]));
  tell(health(['python3', 'building', 0.1], ['shell', 'ready', 1]));
  for (const at of [1, 2, 3, 4, 5.2, 6]) tell(health(['python3', 'building', at], ['shell', 'ready', 1]));
  tell(health(['python3', 'ready', 7], ['shell', 'ready', 1]));
  tell({ status: 'healthy' });
  expect(lines).toEqual([
    'building the image python3 (2 of 2, 0 s) …',
    'building the image python3 (2 of 2, 5 s) …',
    'the image python3 is built (2 of 2, 7 s)',
  ]);
});
