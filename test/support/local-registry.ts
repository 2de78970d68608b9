/**
 * A registry for npm on loopback: has the packages of this repository, and redirects everything else to the registry that
 * npm is configured with.
 */
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface LocalRegistry extends AsyncDisposable {
  /** For `npm_config_registry`. */
  readonly url: string;
  /** Names of the packages that were downloaded from here. */
  readonly downloads: readonly string[];
}

interface Packed {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: Buffer;
}

/** @param folders the packages, as they would be published */
export async function startRegistry(folders: readonly string[]): Promise<LocalRegistry> {
  const packages = new Map(folders.map((folder) => pack(folder)).map((one) => [one.manifest.name, one]));
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim().replace(/\/$/, '');
  const downloads: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/');
    const [, name = '', file] = /^\/([^/]+)(?:\/-\/([^/]+\.tgz))?$/.exec(path) ?? [];
    const found = packages.get(name);
    if (found === undefined) {
      response.writeHead(307, { location: `${upstream}${request.url ?? '/'}` }).end();
      return;
    }
    const { manifest, tarball } = found;
    if (file !== undefined) {
      downloads.push(name);
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball);
      return;
    }
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const dist = { tarball: `${url}/${name}/-/${name}-${manifest.version}.tgz`, integrity };
    const document = {
      name,
      'dist-tags': { latest: manifest.version },
      versions: { [manifest.version]: { ...manifest, dist } },
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    downloads,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pack(folder: string): Packed {
  const to = mkdtempSync(join(tmpdir(), 'cortex-pack-'));
  try {
    const args = ['pack', folder, '--json', '--pack-destination', to];
    const [packed] = JSON.parse(execFileSync('npm', args, { encoding: 'utf8' })) as { filename: string }[];
    return {
      manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Packed['manifest'],
      tarball: readFileSync(join(to, packed?.filename ?? '')),
    };
  } finally {
    rmSync(to, { recursive: true, force: true });
  }
}
