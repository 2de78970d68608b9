import { once } from 'node:events';
import { messageOf } from '../../src/domain/errors.ts';
import { EXIT, UsageError } from '../command.ts';
import { readInput } from '../input-file.ts';
import type { Command } from '../command.ts';
import { textOption } from '../option-values.ts';
import { readScript } from '../scripted-llm/script.ts';
import { startScriptedLlm } from '../scripted-llm/server.ts';
import { parsePort } from '../system/ports.ts';
import { visible } from '../terminal/visible.ts';

export const command: Command = {
  name: 'scripted-llm',
  summary: 'Runs a scripted model server until Ctrl-C (docs/models.md).',
  usage: '<script.yml> [--port <port>]',
  help: '  --port <port>    default: a free one',
  example: 'cortex scripted-llm script.yml --port 9000',
  options: { port: { type: 'string', default: '0' } },
  positionals: [1, 1],
  run: async (call) => {
    const [file = ''] = call.positionals;
    const written = textOption(call, 'port') ?? '0';
    const port = parsePort(written, 0);
    if (port === null) {
      const shown = visible(written.slice(0, 100));
      throw new UsageError(`--port "${shown}" is not a valid port (0-65535; 0 selects a free one)`);
    }
    const answer = read(file);
    const server = await startScriptedLlm((request) => {
      const reply = answer(request);
      const what = 'status' in reply ? reply.status : 'stream';
      call.tell(`${request.path} ${String(request.body['model'] ?? '')} -> ${what}`);
      return reply;
    }, port);
    call.print(call.json ? JSON.stringify({ base_url: server.baseUrl }) : `LLM_BASE_URL=${server.baseUrl}`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    await server[Symbol.asyncDispose]();
    return EXIT.ok;
  },
};

function read(file: string): ReturnType<typeof readScript> {
  const text = readInput(file);
  try {
    return readScript(text);
  } catch (fault) {
    throw new Error(`${file}: ${messageOf(fault)}`, { cause: fault });
  }
}
