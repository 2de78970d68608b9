/** Relic manifests of the original system, in their own forms (M1, R5). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';
import { limits } from '../../../src/domain/limits.ts';

type Files = Readonly<Record<string, string>>;

const load = (files: Files) => migrated(Object.entries(files).map(([path, text]) => ({ path, text })));

/** The relic in `store/relic.yml`, with what the loader said about it, without the file's name and position. */
function relicOf(manifest: string, files: Files = {}) {
  const head = 'kind: Relic\nversion: "1.0"\nname: shelf\nsummary: Keeps books\n';
  const { catalog, problems, warnings } = load({ 'store/relic.yml': `${head}${manifest}`, ...files });
  const said = (list: typeof problems): string[] =>
    list.filter(({ file }) => file === 'store/relic.yml').map((problem) => formatProblem(problem).replace(/^\S+ /, ''));
  return { relic: catalog.relic('shelf'), errors: said(problems), warnings: said(warnings) };
}

const PROJECT = {
  'store/docker-compose.yml': `services:
  shelf:
    build: .
    container_name: shelf_relic
    ports: ["9100:9000"]
    volumes: ["books:/data"]
    environment: [DB_PATH=/data/books.db, LEVEL=info]
    restart: unless-stopped
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost:9000/alive"]
      interval: 20s
volumes: { books: {} }
`,
  'store/Dockerfile':
    'FROM python:3.12\nWORKDIR /app\nCOPY needs.txt .\nCOPY app/ ./app/\nCMD ["python", "app/main.py"]\n',
  'store/needs.txt': 'flask\n',
  'store/app/main.py': 'print(1)',
  'store/app/lib/db.py': 'x = 1',
  'store/notes.md': 'not copied',
};

const SERVICE = `service_type: database
interface:
  type: rest_api
  base_url: "\${SHELF_URL:-http://localhost:9100}"
  endpoints:
    - { name: put_book, method: post, path: /books, description: Stores a book, parameters: { title: { type: string, required: true } } }
    - { name: get_book, method: GET, path: "/books/{id}" }
`;

describe('[M1] a relic of the original with a Compose file', () => {
  const { relic, errors, warnings } = relicOf(
    `${SERVICE}health_check: { type: api_request, endpoint: /health, interval: 15, retries: 3 }
persistence: { type: persistent_volume, size: 5Gi }
deployment: { type: docker, docker_compose_file: ./docker-compose.yml }
environment: { variables: { LEVEL: debug } }
`,
    PROJECT,
  );

  test('is a container that is built from the files that its Dockerfile copies', () => {
    expect(errors).toEqual([]);
    expect(relic?.implementation).toEqual({
      type: 'container',
      image: null,
      build: {
        base: 'python3',
        files: {
          Dockerfile: PROJECT['store/Dockerfile'],
          'needs.txt': 'flask\n',
          'app/main.py': 'print(1)',
          'app/lib/db.py': 'x = 1',
        },
        entrypoint: '',
        requirements: [],
      },
      command: null,
      port: 9_000,
      health: { path: '/health', intervalMs: 15_000, startMs: limits.relicStartMs },
      memoryMb: null,
      cpus: null,
      environment: { DB_PATH: '/data/books.db', LEVEL: 'debug' },
      state: '/data',
    });
  });

  test('keeps its state for all sessions, as the one service of the original does', () => {
    expect(relic).toMatchObject({ persistent: true, scope: 'shared' });
  });

  test('has its endpoints; one without declared parameters accepts any', () => {
    expect(relic?.endpoints).toMatchObject({
      put_book: {
        summary: 'Stores a book',
        effects: 'unsafe',
        http: { method: 'POST', path: '/books' },
        parameters: { required: ['title'], additionalProperties: false },
      },
      get_book: {
        effects: 'idempotent',
        parameters: { properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: true },
      },
    });
  });

  test('gives one warning for each part that was understood', () => {
    expect(warnings).toEqual([
      'interface.base_url: without effect: the runner starts the service and makes its calls',
      'interface.endpoints: understood as endpoints',
      'health_check: understood as implementation.health; the runner decides about timeouts and retries',
      'persistence: understood as persistent: true and scope: shared; the operator limits the size',
      'deployment.docker_compose_file: understood as implementation {type: container}',
      'environment: understood as implementation.environment',
    ]);
  });
});

describe('[M1] what runs a relic of the original', () => {
  const container = (manifest: string, files: Files = {}) => relicOf(`${SERVICE}${manifest}`, files);

  test.each([
    ['deployment: { type: docker, image: "shelf:1" }', { image: 'shelf:1', port: 9_100 }],
    ['deployment: { type: docker, image: "shelf:1", ports: ["9100:80"] }', { image: 'shelf:1', port: 80 }],
    ['deployment: { image: "shelf:1", ports: [{ port: 9100, target_port: 81 }] }', { port: 81 }],
    ['deployment: { image: s, resources: { limits: { cpu: 500m, memory: 64Mi } } }', { cpus: 0.5, memoryMb: 64 }],
    ['deployment: { image: s }\nhealth_check: { url: "http://localhost:9100/up" }', { health: { path: '/up' } }],
    [
      'deployment: { image: s }\nhealth_check: { endpoint: up, interval: 1m }',
      { health: { path: '/up', intervalMs: 60_000 } },
    ],
    ['deployment: { image: s, environment: { A: "1", B: "${X:-two}" } }', { environment: { A: '1', B: 'two' } }],
    [
      'deployment: { image: s }\npersistence: { type: persistent_volume, mount_path: /var/lib/shelf }',
      { state: '/var/lib/shelf' },
    ],
  ])('%s', (manifest, expected) => {
    const { relic, errors } = container(manifest);
    expect(errors).toEqual([]);
    expect(relic?.implementation).toMatchObject(expected);
  });

  test.each([
    ['service: { type: docker-compose, compose_file: docker-compose.yml }'],
    ['implementation: { type: docker-compose, compose_file: docker-compose.yml }'],
    ['mode: managed\nport: 9100\ncompose_file: docker-compose.yml\nhealth_path: /alive'],
    ['deployment: { type: docker-compose, compose_file: docker-compose.yml }'],
    ['deployment: { type: docker }'],
    [''],
  ])('a Compose file as %j', (manifest) => {
    const { relic, errors } = container(manifest, PROJECT);
    expect(errors).toEqual([]);
    expect(relic?.implementation).toMatchObject({ port: 9_000, state: '/data', health: { path: '/alive' } });
  });

  test('without a Compose file, the Dockerfile beside the manifest and its EXPOSE', () => {
    const { relic, errors, warnings } = container('', {
      'store/Dockerfile': 'FROM python\nCOPY . /app\nEXPOSE 7000\n',
      'store/main.py': 'x',
    });
    expect(errors).toEqual([]);
    expect(warnings).toContain('kind: there is no file docker-compose.yml; the Dockerfile in its folder is built');
    expect(relic?.implementation).toMatchObject({ build: { files: { 'main.py': 'x' } } });
  });

  test.each([
    ['', /nothing to run: there is no file docker-compose\.yml and no Dockerfile .* name an image/],
    ['mode: builtin', /implementation: is missing/],
    ['deployment: { type: docker, dockerfile: ./build/Dockerfile }', /there is no store\/build\/Dockerfile/],
  ])('%j without files is an error that says what to add', (manifest, message) => {
    const { relic, errors } = container(manifest);
    expect(relic).toBeNull();
    expect(errors).toEqual([expect.stringMatching(message)]);
  });

  test('a relic of a key-value service never becomes an edge store', () => {
    const { relic, warnings } = relicOf(
      'service_type: cache\nmode: builtin\nendpoints: [{ name: get, method: GET, path: "/c/{key}" }]\n',
    );
    expect(relic).toBeNull();
    expect(warnings).toContainEqual(
      expect.stringMatching(/^mode: "builtin" is a part of the original program; use implementation/),
    );
  });

  test('addresses as endpoints are paths', () => {
    const { relic, errors } = relicOf(
      'service_type: model\nendpoints: { embed: "http://host:8004/embed", rank: /rank }\ndeployment: { image: e }\n',
    );
    expect(errors).toEqual([]);
    expect(relic?.endpoints).toMatchObject({
      embed: { http: { method: 'POST', path: '/embed' } },
      rank: { http: { method: 'POST', path: '/rank' } },
    });
  });
});
