/** `npm run prompt -- <agent>`: prints the system prompt of a bundled agent, and its size to stderr. */
import { bundled } from '../src/catalog/bundled.ts';
import { buildSystemPrompt, estimateTokens } from '../src/protocol/prompt.ts';

const name = process.argv[2] ?? 'assistant';
const resolved = bundled.agent(name);
if (resolved === null) {
  const known = bundled.list('agent').map((agent) => agent.name);
  console.error(`No agent is called "${name}" (known: ${known.join(', ')})`);
  process.exitCode = 1;
} else {
  const prompt = buildSystemPrompt(resolved);
  process.stdout.write(`${prompt}\n`);
  console.error(`\n${prompt.length} characters, about ${estimateTokens(prompt)} tokens`);
}
