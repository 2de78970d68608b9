/**
 * `npm run export -- --out <folder> [--url <address>] [--key <key>]`: copies the sessions that `GET /executions` lists, and
 * the uploaded manifests, of one API key to files. Run again, it copies only what has changed. The default address is the
 * system at PORT; the key can also be in CORTEX_API_KEY.
 */
import { parseArgs } from 'node:util';
import { exportAll } from '../export/export-all.ts';
import { connectionOf } from '../terminal/connection.ts';
import { visible } from '../terminal/visible.ts';

const USAGE = 'npm run export -- --out <folder> [--url <address>] [--key <key>]';

try {
  const { values } = parseArgs({
    options: { out: { type: 'string' }, url: { type: 'string' }, key: { type: 'string' } },
  });
  const { out, url, key } = values;
  if (out === undefined || out === '') throw new Error('--out is missing: the folder to write to');
  if (url !== undefined && !/^https?:\/\/[^/?#\s]+\/?$/.test(url)) {
    throw new Error(`--url must be an address such as https://cortex.example.com, got "${url}"`);
  }
  const connection = connectionOf(process.env, key);
  const address = url?.replace(/\/$/, '') ?? connection.url;
  const result = await exportAll(
    { url: address, key: connection.key },
    { folder: out, wait: (ms) => new Promise((done) => setTimeout(done, ms)), report: (line) => console.log(line) },
  );
  for (const { id, reason } of result.failed) console.error(`not saved: ${id}: ${visible(reason)}`);
  console.log(
    `${result.saved} sessions saved, ${result.unchanged} unchanged, ${result.gone} deleted meanwhile, ` +
      `${result.failed.length} failed; ${result.manifests} manifests`,
  );
  process.exitCode = result.failed.length > 0 ? 1 : 0;
} catch (fault) {
  console.error(`${fault instanceof Error ? visible(fault.message) : String(fault)}\nusage: ${USAGE}`);
  process.exit(2);
}
