/** Relics in real containers: the two bundled ones, and faulty ones (R5). */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { OWNER } from '../../sandbox/docker.ts';
import { connectEngine } from '../../sandbox/docker-engine.ts';
import { dockerSocket, reasonToSkip } from '../support/levels.ts';
import { EVIL, HOARDERS, KEY_VALUE, NARROW, RelicCaller, type RelicReply, SQL_STORE } from '../support/relic-kit.ts';
import { launchRunner } from '../support/runner-process.ts';
import { signed, startRunner, type TestRunner } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

const skip = reasonToSkip('docker');
/** Only ends a test that hangs: containers start slowly on a busy machine. */
const SLOW = 300_000;

describe.skipIf(skip !== null)(`relics in containers${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
  let docker: Docker;
  let runner: TestRunner;

  beforeAll(async () => {
    docker = await connectEngine(dockerSocket);
    runner = await startRunner({ sandbox: 'docker', warm: 0 });
  }, SLOW);
  afterAll(async () => {
    await runner.close();
  }, SLOW);

  /** A session of one test; afterwards, nothing of it is left. */
  interface Place {
    readonly space: string;
    readonly session: RelicCaller;
  }
  const relicTest = test.extend<{ place: Place }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of the required fixtures from the pattern
    place: async ({}, use) => {
      const space = `ses_${randomUUID()}`;
      const session = new RelicCaller(runner, space);
      await use({ space, session });
      await session.stop(true);
      await expectNothingOf(space);
    },
  });

  async function expectNothingOf(space: string): Promise<void> {
    expect(await ofRelics('containers', space)).toEqual([]);
    expect(await ofRelics('networks', space)).toEqual([]);
    expect(await ofRelics('volumes', space)).toEqual([]);
  }

  async function ofRelics(what: 'containers' | 'networks' | 'volumes', ofSpace: string): Promise<string[]> {
    const label = ['cortex-edge=relic', `cortex-edge.space=${ofSpace}`];
    switch (what) {
      case 'containers':
        return (await docker.listContainers({ all: true, filters: { label } })).map(({ Id: id }) => id);
      case 'networks':
        return (await docker.listNetworks({ filters: { label } })).map(({ Id: id }) => id);
      case 'volumes':
        return (await docker.listVolumes({ filters: { label } })).Volumes.map(({ Name: name }) => name);
    }
  }

  /** The two containers of a relic: the service shares the network of the proxy. */
  async function pairOf(space: string, name: string): Promise<{ readonly [part in 'proxy' | 'service']: string }> {
    const label = [`cortex-edge.space=${space}`, `cortex-edge.name=${name}`];
    const found = await docker.listContainers({ filters: { label } });
    const service = found.find(({ HostConfig: host }) => host.NetworkMode.startsWith('container:'));
    const proxy = found.find((one) => one !== service);
    if (service === undefined || proxy === undefined) throw new Error(`${name} does not run`);
    return { proxy: proxy.Id, service: service.Id };
  }

  async function serviceOf(space: string, name: string): Promise<Docker.Container> {
    return docker.getContainer((await pairOf(space, name)).service);
  }

  async function proxyOf(space: string, name: string): Promise<{ readonly id: string; readonly address: string }> {
    const { proxy: id } = await pairOf(space, name);
    const { NetworkSettings: network } = await docker.getContainer(id).inspect();
    return { id, address: Object.values(network.Networks)[0]?.IPAddress ?? '' };
  }

  /** The relics of these tests run once: the two bundled ones and a hostile one, and one of another session. */
  describe('two sessions', () => {
    const space = `ses_${randomUUID()}`;
    const otherSpace = `ses_${randomUUID()}`;
    let session: RelicCaller;
    let other: RelicCaller;
    const kv = (...call: [string, string, unknown?]): Promise<RelicReply> => session.call('key_value', KEY_VALUE, call);
    const sql = (path: string, body?: unknown): Promise<RelicReply> =>
      session.call('sql_store', SQL_STORE, [body === undefined ? 'GET' : 'POST', path, body]);
    const evil = (code: string, timeoutMs?: number): Promise<RelicReply> =>
      session.call('evil', EVIL, ['POST', '/', { code }], timeoutMs);

    beforeAll(() => {
      session = new RelicCaller(runner, space);
      other = new RelicCaller(runner, otherSpace);
    });
    afterAll(async () => {
      await Promise.all([session.stop(true), other.stop(true)]);
      for (const one of [space, otherSpace]) await expectNothingOf(one);
    }, SLOW);

    test('[R5] the key-value store starts with its first call and keeps values with versions', async () => {
      expect(await session.list()).toEqual([]);
      expect(await kv('PUT', '/entries/a%2Fb', { value: { n: [1, 'é'] } })).toMatchObject({
        status: 200,
        body: { key: 'a/b', value: { n: [1, 'é'] }, version: 1 },
      });
      expect(await kv('GET', '/entries/a%2Fb')).toMatchObject({
        body: { found: true, value: { n: [1, 'é'] }, version: 1 },
      });
      expect(await kv('GET', '/entries/none')).toMatchObject({ status: 200, body: { found: false, value: null } });
      expect(await kv('PUT', '/entries/a%2Fb', { value: 2, if_version: 7 })).toMatchObject({
        status: 409,
        body: { version: 1 },
      });
      expect(await kv('POST', '/entries/n/increment', {})).toMatchObject({ body: { value: 1 } });
      expect(await kv('POST', '/entries/n/increment', { by: 4.5 })).toMatchObject({ body: { value: 5.5 } });
      expect(await kv('GET', '/entries?prefix=a')).toMatchObject({
        body: { entries: [{ key: 'a/b' }], more: false },
      });
      expect(await kv('DELETE', '/entries/a%2Fb')).toMatchObject({ body: { deleted: true } });
      expect(await session.list()).toMatchObject([
        { name: 'key_value', state: 'running', level: 'docker', restarts: 0 },
      ]);
    });

    test('[R5] many calls at once are answered', async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => kv('POST', '/entries/many/increment')));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
      expect(await kv('GET', '/entries/many')).toMatchObject({ body: { value: 40 } });
    });

    test('[R5] a relic can use its state after a kill of the runner while it was made; sessions do not see each other', async () => {
      const owner = await fs.readFile(path.join(runner.stateDir, 'runner', 'instance'), 'utf8');
      const parts = [owner, otherSpace, 'key_value'].join('\0');
      await docker.createVolume({
        Name: `cortex-edge-relic-${createHash('sha256').update(parts).digest('hex').slice(0, 32)}`,
        Labels: {
          'cortex-edge': 'relic',
          [OWNER]: owner,
          'cortex-edge.space': otherSpace,
          'cortex-edge.name': 'key_value',
        },
      });
      await kv('PUT', '/entries/mine', { value: 'secret' });
      const ofOther = (...call: [string, string, unknown?]): Promise<RelicReply> =>
        other.call('key_value', KEY_VALUE, call);
      expect(await ofOther('GET', '/entries/mine')).toMatchObject({ body: { found: false } });
      expect(await ofOther('PUT', '/entries/kept', { value: 1 })).toMatchObject({ status: 200 });
      expect(await kv('GET', '/entries/kept')).toMatchObject({ body: { found: false } });
      expect(await other.list()).toHaveLength(1);
      expect(await session.list()).toHaveLength(1);
    });

    test('[R5] restarts with its state after a kill from inside', async () => {
      await kv('PUT', '/entries/kept', { value: 'through it all' });
      const service = await serviceOf(space, 'key_value');
      await service.kill({ signal: 'SIGKILL' });
      expect(await kv('GET', '/entries/kept')).toMatchObject({ status: 200, body: { value: 'through it all' } });
      expect(await session.list()).toMatchObject([{ state: 'running', restarts: 1 }]);
      expect((await serviceOf(space, 'key_value')).id).not.toBe(service.id);
    });

    test('[R5] the SQL store keeps tables; reading changes nothing; a batch is all or nothing', async () => {
      await sql('/execute', { sql: 'CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL)' });
      expect(
        await sql('/execute', { sql: 'INSERT INTO t (b) VALUES (?)', params: ["o'clock; DROP TABLE t"] }),
      ).toMatchObject({
        body: { changes: 1, last_id: 1 },
      });
      expect(await sql('/query', { sql: 'SELECT * FROM t WHERE b LIKE :b', params: { b: 'o%' } })).toMatchObject({
        body: { columns: ['a', 'b'], rows: [[1, "o'clock; DROP TABLE t"]], more: false },
      });
      expect(await sql('/query', { sql: 'DELETE FROM t' })).toMatchObject({ status: 403 });
      const batch = {
        statements: [{ sql: "INSERT INTO t (b) VALUES ('x')" }, { sql: 'INSERT INTO t (b) VALUES (NULL)' }],
      };
      expect(await sql('/batch', batch)).toMatchObject({ status: 400 });
      expect(await sql('/query', { sql: 'SELECT count(*) FROM t' })).toMatchObject({ body: { rows: [[1]] } });
      expect(await sql('/tables')).toMatchObject({
        body: { tables: [{ name: 't', columns: [{ name: 'a' }, { name: 'b' }] }] },
      });
    });

    test.each([
      "ATTACH DATABASE '/tmp/x' AS x",
      'PRAGMA max_page_count = 100000000',
      'PRAGMA journal_mode = OFF',
      "SELECT load_extension('/tmp/x')",
    ])('[X4] %s reaches beyond the database and is refused', async (statement) => {
      const { status } = await sql('/execute', { sql: statement });
      expect([400, 403]).toContain(status);
    });

    test('[R5] tables survive a death in the middle of it', async () => {
      await sql('/execute', { sql: 'CREATE TABLE numbers (a)' });
      for (let at = 0; at < 20; at += 1) {
        await sql('/execute', { sql: 'INSERT INTO numbers VALUES (?)', params: [at] });
      }
      await (await serviceOf(space, 'sql_store')).kill({ signal: 'SIGKILL' });
      // a call during the death fails; the next one succeeds
      await eventually(async () => {
        expect(await sql('/query', { sql: 'SELECT count(*), sum(a) FROM numbers' })).toMatchObject({
          body: { rows: [[20, 190]] },
        });
      });
    });

    test('[R5] a hostile relic has no access to the machine, a network, other sessions or secrets', async () => {
      await Promise.all([evil(''), other.call('key_value', KEY_VALUE, ['GET', '/health'])]);
      const own = 'out["at"] = open("/etc/hosts").read().split()[-2]';
      const at = String(((await evil(own)).body as { readonly at: unknown }).at);
      const { address: their, id: theirId } = await proxyOf(otherSpace, 'key_value');
      expect(their).toMatch(/^[\d.]+$/);
      expect(their).not.toBe(at);
      const gateways = [at, their].map((text) => text.replace(/\d+$/, '1'));
      const port = Number(new URL(runner.url).port);
      const targets = [
        ...[their, ...gateways, '172.17.0.1'].flatMap((host) => [8080, 22, 80, port].map((one) => [host, one])),
        ['169.254.169.254', 80],
        ['1.1.1.1', 53],
      ];
      const look = `
import concurrent.futures, os, socket
def reach(target):
    host, port = target
    try: socket.create_connection((host, port), 0.3); out[f"{host}:{port}"] = "open"
    except OSError as fault:
        if isinstance(fault, ConnectionRefusedError): out[f"{host}:{port}"] = "refused"
with concurrent.futures.ThreadPoolExecutor(16) as pool: list(pool.map(reach, ${JSON.stringify(targets)}))
for place in ("/usr/x", "/etc/x", "/app/x"):
    try: open(place, "w"); out[place] = "written"
    except OSError: pass
# both sessions have a relic with the first name
for name in ("key_value", "${theirId.slice(0, 12)}"):
    try:
        if socket.gethostbyname(name) == "${their}" or name != "key_value": out[name] = "resolved"
    except OSError: pass
out["uid"] = os.getuid()
out["environment"] = [name for name in os.environ if any(word in name for word in ("SECRET", "KEY", "TOKEN"))]
out["docker"] = os.path.exists("/var/run/docker.sock")
`;
      expect((await evil(look, 120_000)).body).toEqual({ uid: 1_000, environment: [], docker: false });
    });

    test('[R5] the engine does not query the name servers of the machine for them', async () => {
      await evil('');
      const { id } = await proxyOf(space, 'evil');
      const { HostConfig: config } = await docker.getContainer(id).inspect();
      expect(config).toMatchObject({ Dns: ['127.0.0.1'], DnsSearch: [] });
    });

    test('[R5] a call that takes too long ends without affecting others; an endless answer is cut', async () => {
      await evil('');
      expect((await evil('import time; time.sleep(60)', 500)).error).toMatchObject({ code: 'relic_timeout' });
      const endless = 'me.send_response(200); me.end_headers()\nwhile True: me.wfile.write(b"x" * 65536)';
      expect((await evil(endless)).error).toMatchObject({ code: 'relic_answer_too_large' });
      expect(await evil('')).toMatchObject({ status: 200 });
    });

    test('[R5] the end of a relic is reported with its exit code and what it said', async () => {
      const ended = await evil('import os; os.write(1, b"no more of me\\n"); os._exit(3)');
      expect(ended.error?.code).toBe('relic_broken');
      await eventually(async () => {
        const found = (await session.list()).find(({ name }) => name === 'evil');
        expect(found).toMatchObject({ last_words: expect.stringContaining('exit code 3') });
        expect(found).toMatchObject({ last_words: expect.stringContaining('no more of me') });
      });
    });

    test('[R5] an image that is not there is named', async () => {
      const definition = { image: 'nowhere/at-all:1', port: 80, health: { path: '/' } };
      const reply = await session.call('far', definition, ['GET', '/']);
      expect(reply.error?.message).toContain('the image nowhere/at-all:1 is missing in the engine');
    });
  });

  describe.concurrent('a service from a Compose project', () => {
    const MAIN = `
import http.server, json, os
PLACE = os.environ["DB_PATH"]
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def say(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        self.say({"level": os.environ.get("LEVEL"), "kept": open(PLACE).read() if os.path.exists(PLACE) else None})
    def do_POST(self):
        open(PLACE, "w").write(self.rfile.read(int(self.headers["content-length"])).decode())
        self.say({"ok": True})
http.server.ThreadingHTTPServer(("0.0.0.0", 9000), Handler).serve_forever()
`;
    const PROJECT = {
      build: {
        files: {
          Dockerfile:
            'FROM python\nWORKDIR /app\nCOPY app/ ./app/\nRUN mkdir -p /data\nEXPOSE 9000\nCMD ["python3", "app/main.py"]\n',
          'app/main.py': MAIN,
        },
      },
      environment: { DB_PATH: '/data/books.db', LEVEL: 'debug' },
      state: '/data',
      persistent: true,
      port: 9000,
      health: { path: '/' },
    };

    relicTest('[R5] keeps the directory of its volume, and has its environment', async ({ place: { session } }) => {
      expect(await session.call('shelf', PROJECT, ['GET', '/'])).toMatchObject({
        body: { level: 'debug', kept: null },
      });
      expect(await session.call('shelf', PROJECT, ['POST', '/', { a: 1 }])).toMatchObject({ body: { ok: true } });
      await session.stop();
      expect(await session.call('shelf', PROJECT, ['GET', '/'])).toMatchObject({ body: { kept: '{"a":1}' } });
    });

    relicTest('[R5] cannot have its state in a directory of the system', async ({ place: { session } }) => {
      for (const state of ['/proc/x', '/etc', '/data/../etc', 'data', '/']) {
        expect(await session.call('shelf', { ...PROJECT, state }, ['GET', '/'])).toMatchObject({ httpStatus: 400 });
      }
    });
  });

  describe.concurrent('runners of their own', () => {
    relicTest('[R5] a relic that stores too much is ended, and its end says why', async ({ place: { space } }) => {
      const narrow = await startRunner({ sandbox: 'docker', warm: 0, operatorLimits: NARROW });
      try {
        const caller = new RelicCaller(narrow, space);
        const code = `import os, time\n${HOARDERS.bytes.code}\ntime.sleep(600)`;
        const definition = { ...EVIL, persistent: true };
        const filled = await caller.call('hoarder', definition, ['POST', '/', { code }], 120_000);
        expect(filled.error).toMatchObject({
          code: 'relic_broken',
          message: expect.stringContaining(`its state exceeds a limit: it holds ${HOARDERS.bytes.words}`),
        });
        await caller.stop(true);
      } finally {
        await narrow.close();
      }
    });

    relicTest(
      '[R5] the containers of a killed runner are removed at the next start; state is kept',
      async ({ place: { space } }) => {
        const stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-test-'));
        const { child, ended, ready } = launchRunner(stateDir, {
          RUNNER_SANDBOX: 'docker',
          RUNNER_WARM: '0',
          ...(dockerSocket === null ? {} : { RUNNER_DOCKER: dockerSocket }),
        });
        const { url } = await ready();
        const ask: TestRunner['ask'] = async (method, target, body) =>
          await fetch(await signed(url, method, target, body === undefined ? '' : JSON.stringify(body)));
        await new RelicCaller({ ask }, space).call('key_value', KEY_VALUE, ['PUT', '/entries/kept', { value: 1 }]);
        expect(await ofRelics('containers', space)).toHaveLength(2);
        child.kill('SIGKILL');
        await ended;

        const next = await startRunner({ sandbox: 'docker', warm: 0, stateDir });
        expect(await ofRelics('containers', space)).toEqual([]);
        const after = new RelicCaller(next, space);
        expect(await after.call('key_value', KEY_VALUE, ['GET', '/entries/kept'])).toMatchObject({
          body: { value: 1 },
        });
        await after.stop(true);
        await next.close();
      },
    );
  });
});
