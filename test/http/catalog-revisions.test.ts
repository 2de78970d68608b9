/** The number of a change of manifests, in the answers of the Worker (Z1). */
import { describe, expect, test } from 'vitest';
import { REVISION_HEADER } from '../../src/http/session-env.ts';
import { edgeApp, noManifests } from './edge-app.ts';

const SESSION = `ses_${'1'.repeat(32)}`;

describe('[Z1] the number of a change', () => {
  test('is in the answer to the change', async () => {
    let revision = 3;
    const app = edgeApp({
      catalogRevisions: { of: () => revision, require: () => undefined },
      manifests: {
        ...noManifests,
        remove: async () => {
          revision = 4;
        },
      },
    });
    const changed = await app.request('http://localhost/manifests/tool/t', { method: 'DELETE' });
    expect([changed.status, changed.headers.get(REVISION_HEADER)]).toEqual([204, '4']);
    const read = await app.request('http://localhost/manifests');
    expect([read.status, read.headers.get(REVISION_HEADER)]).toEqual([200, null]);
  });

  test('is not in the answer of an object, whose headers are fixed, while another request changes manifests', async () => {
    let revision = 3;
    // What `fetch` returns has fixed headers, like the answer of an object.
    const answer = await fetch('data:application/json,{}');
    expect(() => answer.headers.set('x', 'y')).toThrow(/immutable/);
    const app = edgeApp({
      catalogRevisions: { of: () => revision, require: () => undefined },
      forward: async () => {
        revision = 4;
        return answer;
      },
    });
    const cancelled = await app.request(`http://localhost/agent/session/${SESSION}/cancel`, { method: 'POST' });
    expect([cancelled.status, cancelled.headers.get(REVISION_HEADER)]).toEqual([200, null]);
  });
});
