/** `npm run prompt -- <agent>`: prints the system prompt of a bundled agent, and its size to stderr. */
import { bundled } from '../src/catalog/bundled.ts';
import { estimateTokens } from '../src/domain/tokens.ts';
import { buildSystemPrompt } from '../src/protocol/prompt/prompt.ts';

const [name = 'assistant', ...others] = process.argv.slice(2);
const resolved = bundled.agent(name);
if (name.startsWith('-') || others.length > 0) {
  console.error(`expected one agent's name, got "${[name, ...others].join(' ')}"\nusage: npm run prompt -- <agent>`);
  process.exitCode = 2;
} else if (resolved === null) {
  const known = bundled.list('agent').map((agent) => agent.name);
  console.error(`unknown agent "${name}" (known: ${known.join(', ')})`);
  process.exitCode = 1;
} else {
  const prompt = buildSystemPrompt(resolved);
  process.stdout.write(`${prompt}\n`);
  console.error(`\n${prompt.length} characters, about ${estimateTokens(prompt)} tokens`);
}
