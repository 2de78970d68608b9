/** Relics in real containers: the two bundled ones, and faulty ones (R5). */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import { OWNER } from '../../sandbox/docker.ts';
import { connectEngine } from '../../sandbox/docker-engine.ts';
import { dockerSocket, reasonToSkip } from '../support/levels.ts';
import { KEY_VALUE, pythonRelic, RelicCaller, type RelicReply, SQL_STORE } from '../support/relic-kit.ts';
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

  /** Each test has its own session, so that they can run in parallel; afterwards, nothing of it is left. */
  interface Place {
    readonly space: string;
    readonly session: RelicCaller;
    kv(...call: [string, string, unknown?]): Promise<RelicReply>;
    sql(path: string, body?: unknown): Promise<RelicReply>;
  }
  const relicTest = test.extend<{ place: Place }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of the required fixtures from the pattern
    place: async ({}, use) => {
      const space = `ses_${randomUUID()}`;
      const session = new RelicCaller(runner, space);
      await use({
        space,
        session,
        kv: (...call) => session.call('key_value', KEY_VALUE, call),
        sql: (path, body) => session.call('sql_store', SQL_STORE, [body === undefined ? 'GET' : 'POST', path, body]),
      });
      await session.stop(true);
      expect(await ofRelics('containers', space)).toEqual([]);
      expect(await ofRelics('networks', space)).toEqual([]);
      expect(await ofRelics('volumes', space)).toEqual([]);
    },
  });

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

  /** The container of the service, without its proxy. */
  async function serviceOf(space: string, name: string): Promise<Docker.Container> {
    const label = [`cortex-edge.space=${space}`, `cortex-edge.name=${name}`];
    const found = await docker.listContainers({ filters: { label } });
    const service = found.find(({ HostConfig: host }) => host.NetworkMode.startsWith('container:'));
    if (service === undefined) throw new Error(`${name} does not run`);
    return docker.getContainer(service.Id);
  }

  describe.concurrent('the key-value store', () => {
    relicTest('[R5] starts with its first call and keeps values with versions', async ({ place: { session, kv } }) => {
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

    relicTest('[R5] restarts with its state after a kill from inside', async ({ place: { space, session, kv } }) => {
      await kv('PUT', '/entries/kept', { value: 'through it all' });
      const service = await serviceOf(space, 'key_value');
      await service.kill({ signal: 'SIGKILL' });
      expect(await kv('GET', '/entries/kept')).toMatchObject({ status: 200, body: { value: 'through it all' } });
      expect(await session.list()).toMatchObject([{ state: 'running', restarts: 1 }]);
      expect((await serviceOf(space, 'key_value')).id).not.toBe(service.id);
    });

    relicTest('[R5] sessions do not see each other', async ({ place: { session, kv } }) => {
      const other = new RelicCaller(runner, `ses_${randomUUID()}`);
      await kv('PUT', '/entries/mine', { value: 'secret' });
      expect(await other.call('key_value', KEY_VALUE, ['GET', '/entries/mine'])).toMatchObject({
        body: { found: false },
      });
      expect(await other.list()).toHaveLength(1);
      await other.stop(true);
      expect(await session.list()).toHaveLength(1);
    });

    relicTest(
      '[R5] can use its state after a kill of the runner while it was made',
      async ({ place: { space, kv } }) => {
        const owner = await fs.readFile(path.join(runner.stateDir, 'runner', 'instance'), 'utf8');
        const parts = [owner, space, 'key_value'].join('\0');
        await docker.createVolume({
          Name: `cortex-edge-relic-${createHash('sha256').update(parts).digest('hex').slice(0, 32)}`,
          Labels: {
            'cortex-edge': 'relic',
            [OWNER]: owner,
            'cortex-edge.space': space,
            'cortex-edge.name': 'key_value',
          },
        });
        expect(await kv('PUT', '/entries/kept', { value: 1 })).toMatchObject({ status: 200 });
      },
    );

    relicTest('[R5] many calls at once are answered', async ({ place: { kv } }) => {
      await kv('GET', '/health');
      const answers = await Promise.all(Array.from({ length: 40 }, () => kv('POST', '/entries/n/increment')));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
      expect(await kv('GET', '/entries/n')).toMatchObject({ body: { value: 40 } });
    });
  });

  describe.concurrent('the SQL store', () => {
    relicTest('[R5] keeps tables; reading changes nothing; a batch is all or nothing', async ({ place: { sql } }) => {
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

    relicTest('[X4] statements that reach beyond the database are refused', async ({ place: { sql } }) => {
      for (const statement of [
        "ATTACH DATABASE '/tmp/x' AS x",
        'PRAGMA max_page_count = 100000000',
        'PRAGMA journal_mode = OFF',
        "SELECT load_extension('/tmp/x')",
      ]) {
        const { status } = await sql('/execute', { sql: statement });
        expect([400, 403], statement).toContain(status);
      }
    });

    relicTest('[R5] state survives a death in the middle of it', async ({ place: { space, sql } }) => {
      await sql('/execute', { sql: 'CREATE TABLE t (a)' });
      for (let at = 0; at < 20; at += 1) {
        await sql('/execute', { sql: 'INSERT INTO t VALUES (?)', params: [at] });
      }
      await (await serviceOf(space, 'sql_store')).kill({ signal: 'SIGKILL' });
      // a call during the death fails; the next one succeeds
      await eventually(async () => {
        expect(await sql('/query', { sql: 'SELECT count(*), sum(a) FROM t' })).toMatchObject({
          body: { rows: [[20, 190]] },
        });
      });
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

  const server = (handler: string): string => `
import json, os, socket, sys, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            return self.say({"ok": True})
${handler
  .split('\n')
  .map((line) => `        ${line}`)
  .join('\n')}
    def say(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    def log_message(self, *_): pass
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`;

  describe.concurrent('a faulty relic', () => {
    relicTest(
      '[R5] has no access to the machine, a network, other sessions or secrets',
      async ({ place: { session } }) => {
        const other = new RelicCaller(runner, `ses_${randomUUID()}`);
        const spy = pythonRelic(
          server(`
targets = json.loads(urllib.parse.unquote(self.path.split("?", 1)[1]))
def reach(host, port):
    try:
        socket.create_connection((host, port), timeout=0.4).close()
        return True
    except OSError:
        return False
rights = {}
for place in ("/usr/x", "/etc/x", "/app/x"):
    try:
        open(place, "w"); rights[place] = True
    except OSError:
        rights[place] = False
self.say({"reached": [f"{host}:{port}" for host, port in targets if reach(host, port)], "rights": rights,
          "uid": os.getuid(), "environment": sorted(os.environ), "docker": os.path.exists("/var/run/docker.sock")})`),
        );
        await other.call('key_value', KEY_VALUE, ['GET', '/health']);
        const address = new URL(runner.url);
        const victims = (await docker.listNetworks({ filters: { label: ['cortex-edge=relic'] } })).flatMap(
          ({ IPAM: ipam }) =>
            (ipam?.Config ?? []).flatMap(({ Subnet: subnet = '' }) => {
              const base = subnet.split('.').slice(0, 2).join('.');
              return [1, 2, 3].map((last): [string, number] => [
                `${base}.0.${last}`,
                last === 1 ? Number(address.port) : 8080,
              ]);
            }),
        );
        const targets = [...victims, ['172.17.0.1', Number(address.port)], ['169.254.169.254', 80], ['1.1.1.1', 53]];
        const path = `/look?${encodeURIComponent(JSON.stringify(targets))}`;
        const { body } = await session.call('spy', spy, ['GET', path], 50_000);
        const own = (body as { reached: string[] }).reached;
        // only its own address answers
        expect(own.length).toBeLessThanOrEqual(1);
        expect(body).toMatchObject({
          rights: { '/usr/x': false, '/etc/x': false, '/app/x': false },
          uid: 1_000,
          docker: false,
        });
        expect((body as { environment: string[] }).environment.filter((name) => /SECRET|KEY|TOKEN/.test(name))).toEqual(
          [],
        );
        await other.stop(true);
      },
    );

    relicTest('[R5] one that never listens is given up, with what it said', async ({ place: { session } }) => {
      const broken = pythonRelic('print("no port for me")\nraise SystemExit(3)');
      const reply = await session.call('broken', broken, ['GET', '/x']);
      expect(reply.error).toMatchObject({ code: 'relic_unavailable', before_dispatch: true });
      expect(reply.error?.message).toContain('exit code 3');
      expect(reply.error?.message).toContain('no port for me');
    });

    relicTest(
      '[R5] a call that takes too long ends without affecting others; an endless answer is cut',
      async ({ place: { session } }) => {
        const slow = pythonRelic(
          server(`
if self.path == "/slow": time.sleep(60)
self.send_response(200); self.end_headers()
while self.path == "/endless": self.wfile.write(b"x" * 65536)`),
        );
        await session.call('slow', slow, ['GET', '/health']);
        expect((await session.call('slow', slow, ['GET', '/slow'], 500)).error).toMatchObject({
          code: 'relic_timeout',
        });
        expect((await session.call('slow', slow, ['GET', '/endless'])).error).toMatchObject({
          code: 'relic_answer_too_large',
        });
        expect(await session.call('slow', slow, ['GET', '/health'])).toMatchObject({ status: 200 });
      },
    );

    relicTest('[R5] an image that is not there is named', async ({ place: { session } }) => {
      const reply = await session.call('far', { image: 'nowhere/at-all:1', port: 80, health: { path: '/' } }, [
        'GET',
        '/',
      ]);
      expect(reply.error?.message).toContain('the image nowhere/at-all:1 is missing in the engine');
    });
  });

  describe.concurrent('hostile relics', () => {
    /** Runs the code that it receives, as a malicious relic could. */
    const EVIL = pythonRelic(`
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def say(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self): self.say({})
    def do_POST(self):
        out = {}
        try: exec(json.loads(self.rfile.read(int(self.headers["content-length"])))["code"], {"out": out})
        except BaseException as fault: out["fault"] = repr(fault)
        self.say(out)
http.server.ThreadingHTTPServer(("0.0.0.0", int(os.environ["RELIC_PORT"])), Handler).serve_forever()
`);
    const EVIL_STATE = { ...EVIL, persistent: true };
    const evil = (
      caller: RelicCaller,
      name: string,
      code: string,
      relic: Record<string, unknown> = EVIL,
      timeoutMs?: number,
    ) => caller.call(name, relic, ['POST', '/', { code }], timeoutMs);

    relicTest(
      '[R5] a session cannot reach the relics of another or the machine, by address or by name',
      async ({ place: { session } }) => {
        const other = new RelicCaller(runner, `ses_${randomUUID()}`);
        const address = 'out["at"] = open("/etc/hosts").read().split()[-2]';
        const [mine, theirs] = await Promise.all([evil(session, 'mine', address), evil(other, 'theirs', address)]);
        const at = (reply: typeof mine): string => String((reply.body as { readonly at: unknown }).at);
        expect(at(mine)).not.toBe(at(theirs));
        const gateways = [at(mine), at(theirs)].map((text) => text.replace(/\d+$/, '1'));
        const look = `
import socket
for host in ${JSON.stringify([at(theirs), ...gateways, '172.17.0.1'])}:
    for port in (8080, 22, 80):
        try: socket.create_connection((host, port), 0.3); out[f"{host}:{port}"] = "open"
        except OSError as fault:
            if isinstance(fault, ConnectionRefusedError): out[f"{host}:{port}"] = "refused"
`;
        expect(await evil(session, 'mine', look)).toMatchObject({ status: 200, body: {} });
        expect((await evil(session, 'mine', look)).body).toEqual({});
        const names =
          'import socket\ntry: out["at"] = socket.gethostbyname("theirs")\nexcept OSError: out["at"] = None';
        expect(await evil(session, 'mine', names)).toMatchObject({ body: { at: null } });
        await other.stop(true);
      },
    );

    relicTest(
      '[R5] the engine does not query the name servers of the machine for them',
      async ({ place: { space, session } }) => {
        await evil(session, 'mine', '');
        const label = [`cortex-edge.space=${space}`];
        const containers = await docker.listContainers({ filters: { label } });
        const proxy = containers.find(({ HostConfig: host }) => !host.NetworkMode.startsWith('container:'));
        const { HostConfig: config } = await docker.getContainer(proxy?.Id ?? '').inspect();
        expect(config).toMatchObject({ Dns: ['127.0.0.1'], DnsSearch: [] });
      },
    );

    const HOARDERS = [
      ['bytes', 'for i in range(40): open(f"/state/{i}", "wb").write(b"x" * 4_000_000)', 'more than 64 MiB'],
      ['files', 'for i in range(20_000): os.close(os.open(f"/state/{i}", os.O_CREAT))', 'more than 16384 files'],
      ['hidden directories', 'os.makedirs("/state/a/b"); os.chmod("/state/a", 0)', 'cannot be read'],
    ] as const;
    relicTest(
      '[R5] a relic that stores too many bytes, files or hidden directories is ended, and later calls report it',
      async ({ place: { space } }) => {
        const narrow = await startRunner({
          sandbox: 'docker',
          warm: 0,
          operatorLimits: { ...DEFAULT_OPERATOR_LIMITS, diskMb: 64 },
        });
        try {
          const caller = new RelicCaller(narrow, space);
          await Promise.all(
            HOARDERS.map(async ([what, code, words]) => {
              const name = `hoarder_of_${what.replace(' ', '_')}`;
              const filled = await evil(
                caller,
                name,
                `import os\n${code}\nimport time; time.sleep(600)`,
                EVIL_STATE,
                120_000,
              );
              expect(filled.error?.code, what).toBe('relic_broken');
              const reply = await caller.call(name, EVIL_STATE, ['GET', '/']);
              expect(reply.error?.message, what).toContain('its state exceeds a limit');
              expect(reply.error?.message, what).toContain(words);
            }),
          );
          await caller.stop(true);
        } finally {
          await narrow.close();
        }
      },
    );
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
      expect(await after.call('key_value', KEY_VALUE, ['GET', '/entries/kept'])).toMatchObject({ body: { value: 1 } });
      await after.stop(true);
      await next.close();
    },
  );
});
