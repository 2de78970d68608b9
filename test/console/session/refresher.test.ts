import { expect, test } from 'vitest';
import { refresher } from '../../../console/session/refresher.ts';

/** Waits until everything that can go on has gone on. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
}

/** Something that waits until it is let through. */
function gates() {
  const waiting: (() => void)[] = [];
  return {
    wait: async () => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    },
    /** Lets through what waits. @returns how many that are */
    open: async (): Promise<number> => {
      const all = waiting.splice(0);
      for (const resolve of all) resolve();
      await settled();
      return all.length;
    },
  };
}

test('[U2] asked often, it reads once', async () => {
  const pauses = gates();
  let reads = 0;
  const ask = refresher(async () => void (reads += 1), pauses.wait);
  for (let times = 0; times < 5; times += 1) ask();
  expect(reads).toBe(0);
  expect(await pauses.open()).toBe(1);
  expect(reads).toBe(1);
  expect(await pauses.open()).toBe(0);
  ask();
  expect(await pauses.open()).toBe(1);
  expect(reads).toBe(2);
});

test('[U2] asked during a read, it reads again after it, so that the last answer is the newest', async () => {
  const pauses = gates();
  const answers = gates();
  let state = 'old';
  const shown: string[] = [];
  const ask = refresher(async () => {
    const answer = state;
    await answers.wait();
    shown.push(answer);
  }, pauses.wait);
  ask();
  await pauses.open();
  state = 'new';
  ask();
  ask();
  // No second read begins beside the first one.
  expect(await pauses.open()).toBe(0);
  expect(await answers.open()).toBe(1);
  expect(shown).toEqual(['old']);
  expect(await pauses.open()).toBe(1);
  expect(await answers.open()).toBe(1);
  expect(shown).toEqual(['old', 'new']);
  expect(await pauses.open()).toBe(0);
});
