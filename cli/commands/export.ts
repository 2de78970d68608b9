import { EXIT, UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { exportAll } from '../export/export-all.ts';
import { textOption } from '../option-values.ts';
import { connectionOf, request, Unreachable } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';
import { visible } from '../terminal/visible.ts';

export const command: Command = {
  name: 'export',
  summary: 'Copies the sessions and the uploaded manifests of one API key to a folder.',
  usage: '--out <folder>',
  help: '  --out <folder>   run again, the command copies only what has changed',
  example: 'cortex export --out backup --url https://cortex.example.com',
  options: { out: { type: 'string' } },
  isRemote: true,
  positionals: [0, 0],
  run: async (call) => {
    const folder = textOption(call, 'out') ?? '';
    if (folder === '') throw new UsageError('--out is missing: the folder to write to');
    const connection = connectionOf(call);
    await requireSystem(connection);
    const result = await exportAll(connection, {
      folder,
      wait: (ms) => new Promise((done) => setTimeout(done, ms)),
      report: (line) => (call.json ? call.tell : call.print)(line),
    });
    const { saved, unchanged, gone, failed, manifests } = result;
    for (const { id, reason } of failed) call.tell(`not saved: ${id}: ${visible(reason)}`);
    call.print(
      call.json
        ? JSON.stringify(result)
        : `${saved} sessions saved, ${unchanged} unchanged, ${gone} deleted meanwhile, ${failed.length} failed; ${manifests} manifests`,
    );
    return failed.length > 0 ? EXIT.failed : EXIT.ok;
  },
};

/** The export itself is patient with a system that is away. @throws Unreachable at once for a wrong address or key */
async function requireSystem(connection: Connection): Promise<void> {
  try {
    await (await request(connection, '/executions?limit=1')).body?.cancel();
  } catch (fault) {
    if (fault instanceof Unreachable) throw fault;
  }
}
