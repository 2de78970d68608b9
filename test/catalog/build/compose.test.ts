/** Relics whose container a Docker Compose file describes (R5). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';

type Files = Readonly<Record<string, string>>;

const load = (files: Files) => loadManifests(Object.entries(files).map(([path, text]) => ({ path, text })));

/** The relic in `store/relic.yml`, with what the loader said about it, without the file's name and position. */
function relicOf(manifest: string, files: Files = {}) {
  const head = 'kind: Relic\nversion: "1.0"\nname: shelf\nsummary: Keeps books\n';
  const { catalog, problems, warnings } = load({ 'store/relic.yml': `${head}${manifest}`, ...files });
  const said = (list: typeof problems): string[] =>
    list.filter(({ file }) => file === 'store/relic.yml').map((problem) => formatProblem(problem).replace(/^\S+ /, ''));
  return { relic: catalog.relic('shelf'), errors: said(problems), warnings: said(warnings) };
}

describe('[R5] a Compose file', () => {
  const OWN = 'implementation: { type: container, compose: docker-compose.yml }\nendpoints: [{ name: ask }]\n';
  const withCompose = (compose: string, manifest = OWN, files: Files = {}) =>
    relicOf(manifest, { 'store/docker-compose.yml': compose, ...files });

  test('gives the image, the command, the port and the environment of its one service', () => {
    const { relic, errors, warnings } = withCompose(
      `services:
  one:
    image: team/shelf:2
    command: serve --name "a b"
    ports: [{ target: 70, published: 80 }]
    env_file: .env.example
    environment: { A: 1, SECRET: "\${UNSET}" }
    mem_limit: 64m
    cpus: 0.5
`,
      OWN,
      { 'store/.env.example': '# comment\nB="two"\nA=0\n' },
    );
    expect(errors).toEqual([]);
    expect(relic?.implementation).toMatchObject({
      image: 'team/shelf:2',
      command: ['serve', '--name', 'a b'],
      port: 70,
      environment: { A: '1', B: 'two' },
      memoryMb: 64,
      cpus: 0.5,
    });
    expect(warnings).toEqual([expect.stringContaining('SECRET is not set: "${UNSET}" has no default')]);
  });

  test('never gives access to the machine: mounts, networks and privileges are left out with a warning', () => {
    const { relic, warnings } = withCompose(`services:
  one:
    image: s
    privileged: true
    network_mode: host
    volumes: ["/etc:/host", "./here:/there", "data:/data", { type: bind, source: /var/run/docker.sock, target: /sock }]
`);
    expect(JSON.stringify(relic)).not.toMatch(/host|there|sock|privileged/);
    expect(relic?.implementation).toMatchObject({ state: '/data' });
    expect(warnings).toEqual([
      expect.stringMatching(
        /without effect in docker-compose\.yml: privileged, network_mode, the volume \/etc:\/host, the volume \.\/here:\/there, the volume \/var\/run\/docker\.sock:\/sock$/,
      ),
    ]);
  });

  test.each([
    [
      'a: { image: a }\n  b: { image: b }',
      /has several services; set implementation\.compose\.service \(known: a, b\)/,
    ],
    ['one: { ports: ["1:1"] }', /the service in docker-compose\.yml has neither "image" nor "build"/],
    ['one: { image: a, volumes: ["x:/proc/x"] }', /state must be an absolute path, and not a directory of the system/],
    ['one: { build: ../.. }', /there is no \.\.\/Dockerfile/],
  ])('%j', (services, message) => {
    expect(withCompose(`services:\n  ${services}\n`).errors).toEqual([expect.stringMatching(message)]);
  });

  test('with several services: the one that the manifest names, or the one with the name of the relic', () => {
    const TWO = 'services:\n  shelf: { image: a }\n  db: { image: b }\n';
    expect(withCompose(TWO).relic?.implementation).toMatchObject({ image: 'a' });
    expect(withCompose(TWO).warnings[0]).toContain('only the service shelf of docker-compose.yml is used');
    const named = OWN.replace('compose: docker-compose.yml', 'compose: { file: docker-compose.yml, service: db }');
    expect(withCompose(TWO, named).relic?.implementation).toMatchObject({ image: 'b' });
  });

  test('a copied file that does not exist is an error', () => {
    const { errors } = withCompose('services: { one: { build: . } }', OWN, {
      'store/Dockerfile': 'FROM python\nCOPY --chown=1:1 app/ *.txt /app/\n',
      'store/a.txt': '1',
    });
    expect(errors).toEqual([expect.stringContaining('Dockerfile copies "app/", but "." has no such text file')]);
  });

  test('[M4] the relic is built again when a file in its folder changes', () => {
    const files = [
      { path: 'relic.yml', text: `kind: Relic\nversion: "1"\nname: r\nsummary: s\n${OWN}` },
      { path: 'docker-compose.yml', text: 'services: { one: { build: . } }' },
      { path: 'Dockerfile', text: 'FROM python\nCOPY app/ /app/\n' },
      { path: 'app/a.py', text: '1' },
    ];
    const first = loadManifests(files);
    const again = loadManifests([...files, { path: 'app/b.py', text: '2' }], { read: first.read });
    expect(again.catalog.relic('r')?.implementation).toMatchObject({ build: { files: { 'app/b.py': '2' } } });
    expect(loadManifests(files, { read: again.read }).catalog.relic('r')?.implementation).toEqual(
      first.catalog.relic('r')?.implementation,
    );
  });
});
