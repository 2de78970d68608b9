/** `npm run scripted-llm -- script.yml [--port 0]`: runs a scripted model server until Ctrl-C (docs/models.md). */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readScript } from '../scripted-llm/script.ts';
import { startScriptedLlm } from '../scripted-llm/server.ts';

const USAGE = 'usage: npm run scripted-llm -- script.yml [--port 9000]';

function fail(message: string, status: number): never {
  console.error(message);
  process.exit(status);
}

function readArguments(): { file: string; port: number } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { port: { type: 'string', default: '0' } },
    });
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0) return fail(USAGE, 2);
    const port = Number(values.port);
    if (/^\d{1,5}$/.test(values.port) && port < 65_536) return { file, port };
    return fail(`--port "${values.port}" is not a valid port (0-65535; 0 selects a free one)\n${USAGE}`, 2);
  } catch (fault) {
    return fail(`${messageOf(fault)}\n${USAGE}`, 2);
  }
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

function read(file: string): ReturnType<typeof readScript> {
  try {
    return readScript(readFileSync(file, 'utf8'));
  } catch (fault) {
    return fail(`${file}: ${messageOf(fault)}`, 1);
  }
}

const { file, port } = readArguments();
const answer = read(file);
try {
  const server = await startScriptedLlm((request) => {
    const reply = answer(request);
    console.error(
      `${request.path} ${String(request.body['model'] ?? '')} -> ${'status' in reply ? reply.status : 'stream'}`,
    );
    return reply;
  }, port);
  process.once('SIGINT', () => void server[Symbol.asyncDispose]());
  process.once('SIGTERM', () => void server[Symbol.asyncDispose]());
  console.log(`LLM_BASE_URL=${server.baseUrl}`);
} catch (fault) {
  fail(messageOf(fault), 1);
}
