/**
 * `npm run grammar -- <agent> [--format gbnf|lark] [--form full|compact]`: prints the grammar of an agent's protocol text.
 * Asks the running system, with the key in CORTEX_API_KEY; without one, reads the bundled manifests.
 */
import { parseArgs } from 'node:util';
import { grammarDocument } from '../../src/dry-run/agent-documents.ts';
import type { AgentGrammar } from '../../src/protocol/grammar/grammar.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';
import type { Ask } from '../terminal/running-system.ts';

const USAGE = 'npm run grammar -- <agent> [--format gbnf|lark] [--form full|compact]';

function fail(message: string): never {
  console.error(`${message}\nusage: ${USAGE}`);
  process.exit(1);
}

function readArguments(): { name: string; format: string; form: string | undefined } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { format: { type: 'string', default: 'gbnf' }, form: { type: 'string' } },
    });
    if (positionals.length > 1) return fail(`expected one agent's name, got "${positionals.join(' ')}"`);
    return { name: positionals[0] ?? 'assistant', format: values.format, form: values.form };
  } catch (fault) {
    return fail(fault instanceof Error ? fault.message : String(fault));
  }
}

const { name, format, form } = readArguments();
if (format !== 'gbnf' && format !== 'lark') fail(`--format "${format}" is unknown (known: gbnf, lark)`);
if (form !== undefined && form !== 'full' && form !== 'compact') {
  fail(`--form "${form}" is unknown (known: full, compact)`);
}
try {
  const ask = await runningSystem(process.env);
  const { text, notes } =
    ask === null ? grammarDocument(bundledAgent(name), { format, form: form ?? null }) : await asked(ask);
  process.stdout.write(text);
  for (const note of notes) console.error(note);
} catch (fault) {
  console.error(fault instanceof Error ? fault.message : String(fault));
  process.exitCode = 1;
}

async function asked(ask: Ask): Promise<AgentGrammar> {
  const query = new URLSearchParams(form === undefined ? { format } : { format, protocol_form: form });
  const accept = { headers: { accept: 'application/json' } };
  const answer = await ask(`/agents/${encodeURIComponent(name)}/grammar?${query}`, accept);
  const { grammar, notes } = (await answer.json()) as { readonly grammar: string; readonly notes: readonly string[] };
  return { text: grammar, notes };
}
