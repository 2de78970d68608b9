/** `npm run grammar -- <agent> [--format gbnf|lark] [--form full|compact]`: prints the grammar of a bundled agent's protocol text. */
import { parseArgs } from 'node:util';
import { bundled } from '../src/catalog/bundled.ts';
import { buildGrammar } from '../src/protocol/grammar/grammar.ts';

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
const resolved = bundled.agent(name);
if (resolved === null) {
  const known = bundled.list('agent').map((agent) => agent.name);
  fail(`unknown agent "${name}" (known: ${known.join(', ')})`);
}
const grammar = buildGrammar(resolved, form === undefined ? { format } : { format, form });
process.stdout.write(grammar.text);
for (const note of grammar.notes) console.error(note);
