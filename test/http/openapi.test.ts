import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { VERSION } from '../../src/domain/version.ts';
import { OPERATIONS } from '../../src/http/operations.ts';
import type { Operation as OperationRow } from '../../src/http/operations.ts';
import { executionsQuery, queryParameters } from '../../src/http/query.ts';
import { createSessionBody, executeBody, messageBody, validate } from '../../src/http/schemas.ts';
import { createSessionApp, sessionRoutes } from '../../src/http/session-app.ts';
import rootPackage from '../../package.json' with { type: 'json' };
import { describedRoutes, pathOf, SESSION_PATH } from '../support/described-routes.ts';
import type { DescribedRoute } from '../support/described-routes.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { surfaceBody } from '../../src/http/responses/surfaces.ts';
import { sessionKit } from '../support/session-kit.ts';
import { edgeApp } from './edge-app.ts';
import { EVENT_SCHEMAS } from '../../src/domain/event-table.ts';

/** Routes between the Worker and the object; clients cannot call them. */
const INTERNAL = /session\/\{id\}\/-\//;

/** A valid value for each parameter, and some invalid ones. */
const RUN = `run_${'a'.repeat(32)}_1`;
const APPROVALS_PLACE = `1-apr_${'a'.repeat(32)}`;
const SESSIONS_PLACE = `1-ses_${'a'.repeat(32)}`;
const GOOD: Readonly<Record<string, string>> = {
  entity_type: 'agent',
  ready: '1',
  after: '3',
  run: RUN,
  limit: '2',
  kind: 'chat',
  starting_after: '3',
  before: '1',
  format: 'jsonl',
  protocol_form: 'compact',
  export: '0',
  archive: 'zip',
  prefix: 'data/',
  executable: 'true',
  recursive: 'true',
  if_busy: 'reject',
  agent: 'assistant',
  stream: 'false',
  status: 'failed',
  count: '3',
  owner: 'ann',
  path: 'a.yaml',
  version: '1.0',
  revision: '2',
  token: 'a.b.c',
};
const NUMBERS = ['-1', '1e3', 'abc', '1.0', '+1', ' 1', '1 ', '0x10', '٣', '1_0', 'NaN', '1'.repeat(40)];
const WRONG: Readonly<Record<string, readonly string[]>> = {
  after: NUMBERS,
  starting_after: NUMBERS,
  limit: [...NUMBERS, '0', '101'],
  count: [...NUMBERS, '0', '100'],
  revision: [...NUMBERS, '0'],
  before: ['-1', '1e3', 'abc', '1.0', `${RUN}x`],
  run: ['1', 'run_', 'ses_1', `run_${'a'.repeat(200)}`],
  ready: ['yes', '2', 'TRUE'],
  export: ['yes', '2'],
  executable: ['yes', '2'],
  recursive: ['yes', '2'],
  prefix: ['\u0000', 'a\\b', 'x'.repeat(600)],
  format: ['csv', 'JSONL', 'jsonl '],
  if_busy: ['wait', 'Queue'],
  stream: ['0', 'no', 'TRUE'],
  status: ['done', 'FAILED', 'failed,completed'],
  token: ['a b', 'a&b'],
};

const nothing = async (): Promise<never> => await Promise.reject(new Error('not called'));

const edge = edgeApp();

const ROUTES: readonly DescribedRoute[] = [...describedRoutes(edge), ...describedRoutes(sessionRoutes, SESSION_PATH)];

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly schema: { readonly properties: object; readonly required?: string[] } }>
    >;
  };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const document = (await (await edge.fetch(new Request('http://localhost/openapi.json'))).json()) as Document;
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
);

test('[H4] every route is described once, and the OpenAPI document lists exactly the routes', () => {
  const handlers = (app: { routes: readonly { method: string; path: string }[] }, prefix: string): string[] =>
    app.routes
      .filter(({ method }) => method !== 'ALL')
      .map((route) => `${route.method.toLowerCase()} ${pathOf(route, prefix)}`);
  const actual = new Set([...handlers(edge, ''), ...handlers(sessionRoutes, SESSION_PATH)]);
  const described = ROUTES.map(({ method, path }) => `${method} ${path}`).toSorted();
  expect(described).toEqual([...actual].filter((route) => !INTERNAL.test(route)).toSorted());
  expect(operations.map(({ name }) => name).toSorted()).toEqual(described);
});

describe('[H4] the document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate({ ...document })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
    // The check works: paths begin with a slash.
    expect((await new Validator().validate({ ...document, paths: { x: {} } })).valid).toBe(false);
  });

  test('gives each operation a unique id', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  });

  test('declares each event, and the union of events as the content of streams', () => {
    const { schemas } = document.components;
    const events = Object.values(schemas).filter(
      (schema) => 'properties' in schema && 'seq' in Object(schema.properties),
    );
    expect(events).toHaveLength(EVENT_SCHEMAS.size);
    expect(schemas['SessionEvent']).toMatchObject({ anyOf: expect.any(Array) });
    const stream = document.paths['/agent/session/{id}/events']?.['get']?.responses['200'];
    expect(stream?.content?.['text/event-stream']).toMatchObject({
      schema: { contentSchema: { $ref: '#/components/schemas/SessionEvent' } },
    });
  });

  test('declares the members of every JSON answer by reference', () => {
    const answers = operations.flatMap(({ name, responses }) =>
      Object.values(responses).flatMap(({ content }) => {
        const answer = content?.['application/json'];
        return answer === undefined ? [] : [[name, JSON.stringify(answer)] as const];
      }),
    );
    expect(answers.length).toBeGreaterThan(40);
    for (const [name, text] of answers) expect(text, name).toMatch(/"(?:properties|\$ref|items)":/);
    const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(20);
    for (const [, name = ''] of references) expect(document.components.schemas).toHaveProperty([name]);
  });

  test('takes request bodies from the schemas that validate them', () => {
    const message = document.paths['/agent/session/{id}/message']?.['post'];
    const body = message?.requestBody?.content['application/json']?.schema;
    expect(Object.keys(body?.properties ?? {})).toEqual([
      'content',
      'message',
      'tools',
      'instructions',
      'metadata',
      'parent_run',
      'stream',
      'llm_tokens',
    ]);
    expect(() => validate(messageBody, {})).toThrow('either as "content" or as "message"');
  });
});

async function inside(): Promise<ReturnType<typeof createSessionApp>> {
  const { session } = await sessionKit();
  return createSessionApp({ session, clock: new VirtualClock(), destroy: nothing, log: () => undefined });
}

/** A problem document, or an error of OpenAI's API. */
interface ErrorBody {
  readonly code?: string;
  readonly detail?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Sends a request to the router of a route. */
async function ask(route: DescribedRoute, search: string): Promise<readonly [number, string]> {
  const isInside = /^\/agent\/session\/\{id\}(?!\/tokens|\/fork)/.test(route.path);
  const filled = route.path
    .replace('{kind}', 'tool')
    .replace('/agent/session/{id}', isInside ? '' : `/agent/session/ses_${'a'.repeat(32)}`)
    .replaceAll(/\{\w+\}/g, 'x');
  const init = { method: route.method.toUpperCase(), ...(route.method === 'get' ? {} : { body: '{}' }) };
  const request = new Request(`http://localhost${filled}${search}`, init);
  const response = await (isInside ? await inside() : edge).fetch(request);
  if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
    await response.body?.cancel();
    return [response.status, ''];
  }
  if (response.headers.get('content-type')?.startsWith('text/plain') === true) {
    const [, detail = '', code = ''] = /^(.*) \((\w+)\)$/s.exec(await response.text()) ?? [];
    return [response.status, `${code}: ${detail}`];
  }
  const { error, ...problem } = (await response.json().catch(() => ({}))) as ErrorBody;
  const { code, detail } = error === undefined ? problem : { code: error.code, detail: error.message };
  return [response.status, `${code}: ${detail}`];
}

const asked = ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const);

describe.each(asked)('[H4] %s', (_, route) => {
  const names = Object.keys(route.query ?? {});
  const { surface }: OperationRow = OPERATIONS[route.operation];

  // Clients of other protocols may send parameters of theirs.
  const unknown = surface === undefined ? 'refuses' : 'ignores';
  test(`${unknown} an unknown query parameter, with the nearest name`, async () => {
    if (surface !== undefined) {
      for (const name of ['zzzzzzzzzzzz', '__proto__', 'include[]']) {
        expect((await ask(route, `?${name}=1&${name}=2`))[1]).not.toMatch(/query parameter|more than once/);
      }
      return;
    }
    const known = names.length === 0 ? 'this route has none' : `known: ${names.join(', ')}`;
    expect(await ask(route, '?zzzzzzzzzzzz=1')).toEqual([
      400,
      `invalid_request: Unknown query parameter "zzzzzzzzzzzz" (${known})`,
    ]);
    for (const hostile of ['__proto__', 'constructor', 'toString', 'x'.repeat(9_000)]) {
      expect((await ask(route, `?${hostile}=1`))[0]).toBe(400);
    }
    for (const name of names) {
      const typed = `${name.toUpperCase()}_`;
      expect(await ask(route, `?${typed}=1`)).toEqual([
        400,
        `invalid_request: Unknown query parameter "${typed}" (did you mean "${name}"?)`,
      ]);
    }
  });

  test('refuses a parameter that is repeated, empty or invalid', async () => {
    for (const [name, field] of Object.entries(route.query ?? {})) {
      // A session token is checked before anything else in the request.
      if (name === 'token') continue;
      const good =
        [GOOD[name] ?? '', APPROVALS_PLACE, SESSIONS_PLACE, 'gbnf', 'idle', 'compact'].find(
          (value) => field.schema.safeParse(value).success,
        ) ?? '';
      for (const search of [`?${name}=${good}&${name}=${good}`, `?${name}=${good}&${name}=`]) {
        expect(await ask(route, search)).toEqual([
          400,
          `invalid_request: "${name}" is given more than once; expected ${field.expected}`,
        ]);
      }
      const empty = await ask(route, `?${name}=`);
      if (field.bare) expect(empty[1]).not.toContain('is empty');
      else expect(empty).toEqual([400, `invalid_request: "${name}" is empty; expected ${field.expected}`]);
      for (const bad of WRONG[name] ?? ['\u0000', 'x'.repeat(300)]) {
        const [status, said] = await ask(route, `?${name}=${encodeURIComponent(bad)}`);
        expect([name, bad.slice(0, 80), status]).toEqual([name, bad.slice(0, 80), 400]);
        expect(said).toContain(`"${name}" must be ${field.expected}, not "`);
      }
      expect((await ask(route, `?${name}=${good}`))[1]).not.toContain(`"${name}"`);
    }
  });

  test('is documented with the values that it accepts', () => {
    const parameters = document.paths[route.path]?.[route.method]?.parameters ?? [];
    expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual(names);
    for (const { in: where, schema } of parameters) if (where === 'query') expect(schema).toHaveProperty('type');
  });
});

test('[Z4] [H4] every stream of our own events has a compact form; an unknown form is refused with the nearest name', async () => {
  const streams = ROUTES.filter(({ media, operation }) => {
    const { surface }: OperationRow = OPERATIONS[operation];
    return media === 'events' && surface === undefined;
  });
  expect(streams).toHaveLength(6);
  for (const route of streams) {
    expect(await ask(route, '?format=compct')).toEqual([
      400,
      'invalid_request: "format" must be one of full, compact, not "compct" (did you mean "compact"?)',
    ]);
  }
});

test('[H4] a limit is documented as a number with its bounds', () => {
  const field = queryParameters(executionsQuery).find((one) => 'name' in one && one.name === 'limit');
  expect(field).toMatchObject({ schema: { type: 'integer', minimum: 1, maximum: 100 } });
});

describe('[H4] [H5] order of refusals', () => {
  test('a request to an unknown session gives unknown_session, even if it has other errors', async () => {
    const { session } = await sessionKit();
    const gone = Object.create(session, { exists: { value: false } }) as typeof session;
    Object.defineProperty(gone, 'record', {
      get: () => {
        throw new EngineError('unknown_session', 'gone');
      },
    });
    Object.defineProperty(gone, 'recover', { value: async () => undefined });
    const app = createSessionApp({ session: gone, clock: new VirtualClock(), destroy: nothing, log: () => undefined });
    expect((await app.fetch(new Request('http://localhost/events?zzz=1'))).status).toBe(404);
  });

  test('a token is accepted once, and removed from the URL', async () => {
    const path = `http://localhost/agent/session/ses_${'a'.repeat(32)}/events?token=a.b.c&token=a.b.c`;
    expect((await edge.fetch(new Request(path))).status).toBe(401);
  });
});

describe('[H4] members of a body', () => {
  const bodies = ROUTES.flatMap((route) =>
    route.body === undefined || route.body === surfaceBody ? [] : [[route.path, route.body] as const],
  );
  test.each(bodies)('%s refuses an unknown member, with the nearest name', (_, schema) => {
    const first = Object.keys((schema as unknown as { shape: object }).shape)[0] ?? '';
    const said = (value: unknown): string => {
      try {
        validate(schema, value);
        return 'taken';
      } catch (fault) {
        return (fault as Error).message;
      }
    };
    expect(said({ [`${first}s_`]: 1 })).toBe(`"${first}s_": unknown member (did you mean "${first}"?)`);
    expect(said({ qqqqqqqqqqqqqq: 1 })).toMatch(/^"q+": unknown member \(known: /);
    expect(said(JSON.parse('{"__proto__": {"stream": false}}'))).toContain('"__proto__": unknown member');
    // Very many unknown members cost no more than a few.
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_unused, at) => [`${'m'.repeat(50)}${at}`, at]));
    expect(said(many).length).toBeLessThan(400);
  });

  test.each([
    [messageBody, 'the session id is part of the URL', { content: 'x' }],
    [createSessionBody, 'the system assigns session ids', {}],
  ])('a session_id in the wrong place is refused with the correct place', (schema, hint, rest) => {
    for (const name of ['session_id', 'sessionId', 'session-id']) {
      expect(() => validate(schema, { ...rest, [name]: 'ses_1' })).toThrow(hint);
    }
  });

  test("an execution keeps the client's own session_id, and does not take one of this system for its own", () => {
    const body = (session_id: string | null): object => ({ protocol_text: 'x', session_id });
    for (const own of ['cli-1', null]) expect(validate(executeBody, body(own))).toMatchObject({ session_id: own });
    const hint = 'POST /agent/session/{id}/message continues a session';
    expect(() => validate(executeBody, body(`ses_${'1'.repeat(32)}`))).toThrow(hint);
  });
});

test('the version is the package’s version', () => {
  expect(VERSION).toBe(rootPackage.version);
});
