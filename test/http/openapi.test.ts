import { expect, test } from 'vitest';
import { VERSION } from '../../src/domain/version.ts';
import { createApp } from '../../src/http/app.ts';
import { openApiDocument, ROUTES } from '../../src/http/openapi.ts';
import { SessionTokens } from '../../src/http/tokens.ts';
import { createSessionApp } from '../../src/http/session-app.ts';
import rootPackage from '../../package.json' with { type: 'json' };
import { FakeClock } from '../support/fake-clock.ts';
import { sessionKit } from '../support/session-kit.ts';
import { noWorkflows } from '../support/no-workflows.ts';

/** Routes that the Worker uses between itself and the object; no client sees them. */
const INTERNAL = /session\/\{id\}\/-\//;

test('[H4] the OpenAPI document lists exactly the routes that there are', async () => {
  const { session } = await sessionKit();
  const nothing = async (): Promise<never> => await Promise.reject(new Error('not called'));
  const edge = createApp({
    version: VERSION,
    auth: { keys: [], allowedOrigins: [] },
    tokens: new SessionTokens(
      () => '',
      () => 0,
    ),
    now: () => 0,
    newSessionId: () => '',
    agent: async () => null,
    manifests: { ask: async () => [] },
    createSession: nothing,
    forward: nothing,
    workflows: noWorkflows,
    executions: nothing,
    status: nothing,
    log: () => undefined,
  });
  const inside = createSessionApp({ session, clock: new FakeClock(), destroy: nothing, log: () => undefined });
  const named = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}');
  const handlers = (app: { routes: readonly { method: string; path: string }[] }): { method: string; path: string }[] =>
    app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => ({ method: method.toLowerCase(), path: named(path) }));
  const actual = [
    ...handlers(edge).map(({ method, path }) => `${method} ${path}`),
    ...handlers(inside).map(({ method, path }) => `${method} /agent/session/{id}${path === '/' ? '' : path}`),
  ].filter((route) => !INTERNAL.test(route));
  const shape = (route: string): string => route.replaceAll(/\{\w+\}/g, '{}');
  expect(ROUTES.map(({ method, path }) => shape(`${method} ${path}`)).toSorted()).toEqual(actual.map(shape).toSorted());
});

test('[H4] bodies come from the schemas that validate them', () => {
  const document = openApiDocument(VERSION) as unknown as {
    paths: Record<
      string,
      Record<
        string,
        { requestBody?: { content: Record<string, { schema: { properties: object; required?: string[] } }> } }
      >
    >;
  };
  const body =
    document.paths['/agent/session/{id}/message']?.['post']?.requestBody?.content['application/json']?.schema;
  expect(Object.keys(body?.properties ?? {})).toEqual(['content', 'stream', 'llm_tokens']);
  expect(body?.required).toEqual(['content']);
});

test('the version is the package’s', () => {
  expect(VERSION).toBe(rootPackage.version);
});
