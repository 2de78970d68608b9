/** `npm run scripted-llm -- script.yml [--port 0]`: a model server for tests, until Ctrl-C (docs/models.md). */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readScript } from './scripted-llm/script.ts';
import { startScriptedLlm } from './scripted-llm/server.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '0' } },
});
const [file] = positionals;
if (file === undefined) {
  console.error('usage: npm run scripted-llm -- script.yml [--port 9000]');
  process.exit(2);
}
try {
  const answer = readScript(readFileSync(file, 'utf8'));
  const server = await startScriptedLlm((request) => {
    const reply = answer(request);
    console.error(
      `${request.path} ${String(request.body['model'] ?? '')} -> ${'status' in reply ? reply.status : 'stream'}`,
    );
    return reply;
  }, Number(values.port));
  process.once('SIGINT', () => void server[Symbol.asyncDispose]());
  process.once('SIGTERM', () => void server[Symbol.asyncDispose]());
  console.log(`LLM_BASE_URL=${server.baseUrl}`);
} catch (fault) {
  console.error(fault instanceof Error ? fault.message : String(fault));
  process.exitCode = 1;
}
