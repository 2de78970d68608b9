/** What many tests of commands need: a folder of their own, and a server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

const made = (): string => mkdtempSync(join(tmpdir(), 'cortex-test-'));
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true });

/** A new folder, until all tests of the file have ended. */
export function folderOfFile(): string {
  const folder = made();
  afterAll(() => remove(folder));
  return folder;
}

/** A new folder for each test. */
export function folderOfEach(begin: (folder: string) => void): void {
  let folder = '';
  beforeEach(() => begin((folder = made())));
  afterEach(() => remove(folder));
}

/** A server on this machine, while the tests of the file run. Its port is known in tests only. */
export function serverOfFile(answer: RequestListener): { readonly port: number; readonly url: string } {
  const server = createServer(answer);
  beforeAll(async () => await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    get port() {
      return (server.address() as AddressInfo).port;
    },
    get url() {
      return `http://127.0.0.1:${this.port}`;
    },
  };
}
