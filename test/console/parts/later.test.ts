import { expect, test } from 'vitest';
import { later } from '../../../console/parts/later.ts';

test('[U1] code is loaded once, when it is asked for', async () => {
  let times = 0;
  const part = later(async () => {
    times += 1;
    return await Promise.resolve('code');
  });
  expect([part.code.value, times]).toEqual([null, 0]);
  part.load();
  part.load();
  await Promise.resolve();
  await Promise.resolve();
  expect([part.code.value, part.fault.value, times]).toEqual(['code', null, 1]);
});

test('[U1] code that could not be loaded is asked for again, and the fault is shown until then', async () => {
  const answers = [Promise.reject(new Error('offline')), Promise.resolve('code')];
  const part = later(async () => await (answers.shift() ?? Promise.reject(new Error('a third time'))));
  part.load();
  await expect.poll(() => part.fault.value).toEqual(new Error('offline'));
  expect(part.code.value).toBeNull();
  part.load();
  expect(part.fault.value).toBeNull();
  await expect.poll(() => part.code.value).toBe('code');
});
