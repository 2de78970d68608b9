/** Requests without a route (H4). */
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { unknownRoute } from '../../src/http/unknown-route.ts';

const app = new Hono();
app.notFound((c) => unknownRoute(app, c.req.raw));
app.use(async (_c, next) => await next());
app.get('/things/:id', (c) => c.text('thing'));
app.delete('/things/:id', (c) => c.body(null, 204));
app.all('/any/*', (c) => c.text('any'));

describe('[H4] a request without a route', () => {
  test.each([
    ['PATCH', '/things/7', 405, 'GET, DELETE'],
    ['POST', '/things/7', 405, 'GET, DELETE'],
    ['POST', '/nothing', 404, null],
    ['GET', '/things/7/more', 404, null],
  ])('%s %s is %s', async (method, path, status, allow) => {
    const response = await app.request(path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([status, allow]);
    const { code, detail } = (await response.json()) as { code: string; detail: string };
    expect(code).toBe(status === 405 ? 'method_not_allowed' : 'not_found');
    expect(detail).toContain(`${method} ${path}`);
    expect(detail.includes('allowed: GET, DELETE')).toBe(status === 405);
  });

  test('a route of a path has its own answer', async () => {
    expect(await (await app.request('/things/7')).text()).toBe('thing');
    expect(await (await app.request('/any/x', { method: 'PATCH' })).text()).toBe('any');
  });
});
