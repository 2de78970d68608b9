/** The referee of the Model Context Protocol judges our server, with `npm start` (E4). */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { NOT_APPLICABLE, refereed, REFEREE_MANIFESTS } from '../support/mcp-referee.ts';
import { cleanUp, start } from '../support/npm-start.ts';

let url = '';
beforeAll(async () => {
  const system = await start(LIGHT_SANDBOX);
  url = `${system.url}/mcp`;
  const body = JSON.stringify({ files: REFEREE_MANIFESTS });
  const uploaded = await fetch(`${system.url}/manifests`, { method: 'PUT', body });
  expect(await uploaded.json()).toMatchObject({ problems: [] });
}, 300_000);
afterAll(cleanUp);

test.each(Object.entries(NOT_APPLICABLE))('[E4] the referee finds nothing else in %s', async (revision, listed) => {
  // What is listed must still exist and fail in the same number of checks; all else passes.
  const expected = Object.fromEntries(Object.entries(listed).map(([name, [count]]) => [name, count]));
  let verdict = await refereed(url, revision);
  // The referee's checks have short time-outs of their own, which a busy machine can exceed.
  for (let again = 0; again < 2 && !isDeepStrictEqual(verdict.failed, expected); again += 1) {
    verdict = await refereed(url, revision);
  }
  expect(verdict.scenarios.length, verdict.output).toBeGreaterThan(30);
  expect(verdict.failed).toEqual(expected);
});
