/**
 * `npm run prompt -- <agent>`: prints the system prompt of an agent, and its size to stderr. Asks the running system, with
 * the key in CORTEX_API_KEY; without one, reads the bundled manifests.
 */
import { promptDocument } from '../../src/dry-run/agent-documents.ts';
import type { PromptDocument } from '../../src/dry-run/agent-documents.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';

async function read(name: string): Promise<PromptDocument> {
  const ask = await runningSystem(process.env);
  if (ask === null) return promptDocument(bundledAgent(name), null, Date.now());
  const accept = { headers: { accept: 'application/json' } };
  return (await (await ask(`/agents/${encodeURIComponent(name)}/prompt`, accept)).json()) as PromptDocument;
}

const [name = 'assistant', ...others] = process.argv.slice(2);
if (name.startsWith('-') || others.length > 0) {
  console.error(`expected one agent's name, got "${[name, ...others].join(' ')}"\nusage: npm run prompt -- <agent>`);
  process.exitCode = 2;
} else {
  try {
    const { prompt, characters, tokens, sections } = await read(name);
    process.stdout.write(`${prompt}\n`);
    console.error(`\n${characters} characters, about ${tokens} tokens`);
    for (const section of sections) console.error(`${String(section.tokens).padStart(7)}  ${section.title}`);
  } catch (fault) {
    console.error(fault instanceof Error ? fault.message : String(fault));
    process.exitCode = 1;
  }
}
