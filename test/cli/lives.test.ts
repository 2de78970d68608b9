/** The frozen lives of the Worker, as they are passed to its later lives (J2). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { Lives } from '../../cli/system/lives.ts';
import { startLimits } from '../../cli/system/start-limits.ts';
import { folderOfEach } from './scene.ts';

let folder: string;
folderOfEach((made) => (folder = made));

/** One `npm start` that observes the given states of its Worker and then ends. */
function lifeOf(...seen: ('answers' | 'silent' | 'froze')[]): void {
  const lives = new Lives(folder);
  lives.begin();
  for (const what of seen) {
    if (what === 'froze') lives.froze();
    else lives.seen(what);
  }
}

const next = (): { life: number; frozen: readonly number[] } => {
  const { life, frozen } = new Lives(folder).begin();
  return { life, frozen };
};

test.each<[string, ('answers' | 'silent' | 'froze')[], number[]]>([
  ['is killed before its first answer', [], []],
  ['answers, and is stopped or killed', ['answers'], []],
  ['is silent for a short time', ['answers', 'silent', 'answers'], []],
  ['freezes, and is ended', ['answers', 'silent', 'froze'], [1]],
  ['is silent when its starter is killed', ['answers', 'silent'], [1]],
])('[J2] a life that %s', (_name, seen, frozen) => {
  lifeOf(...seen);
  expect(next()).toEqual({ life: 2, frozen });
  expect(next()).toEqual({ life: 3, frozen });
});

test('[J2] the lives of one start have separate numbers, and a frozen life is reported once', () => {
  const lives = new Lives(folder);
  expect(lives.begin()).toMatchObject({ life: 1, frozen: [] });
  lives.seen('silent');
  lives.froze();
  expect(lives.begin()).toMatchObject({ life: 2, frozen: [1] });
  lives.seen('answers');
  expect(lives.begin()).toMatchObject({ life: 3, frozen: [1] });
});

test('[J2] the oldest lives are forgotten', () => {
  for (let life = 1; life <= startLimits.frozenLives + 5; life += 1) lifeOf('froze');
  expect(next().frozen).toHaveLength(startLimits.frozenLives);
});

test.each(['', '{', '{"life":"1"}', '{"life":1,"phase":"silent","frozen":["x"]}'])(
  '[J2] a file with the content %j is replaced',
  (text) => {
    writeFileSync(join(folder, 'lives.json'), text);
    expect(next()).toEqual({ life: 1, frozen: [] });
    expect(JSON.parse(readFileSync(join(folder, 'lives.json'), 'utf8'))).toMatchObject({ life: 1 });
  },
);
