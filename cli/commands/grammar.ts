import { grammarDocument } from '../../src/dry-run/agent-documents.ts';
import type { AgentGrammar } from '../../src/protocol/grammar/grammar.ts';
import { EXIT } from '../command.ts';
import type { Command } from '../command.ts';
import { wordOption } from '../option-values.ts';
import { TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';
import type { Ask } from '../terminal/running-system.ts';

type Notation = 'gbnf' | 'lark';
type Form = 'full' | 'compact' | undefined;

export const command: Command = {
  name: 'grammar',
  summary: "Prints a grammar of an agent's protocol text, for constrained decoding.",
  usage: '[<agent>] [--format gbnf|lark] [--form full|compact] [--trust]',
  help: `  <agent>          default: assistant; of the running system, else of the project's manifests
  --format <name>  gbnf (default) or lark
  --form <name>    full or compact; default: that of the agent's manifest
${TRUST_HELP}`,
  example: 'cortex grammar assistant --format lark',
  options: { format: { type: 'string' }, form: { type: 'string' }, ...TRUST_OPTION },
  isRemote: true,
  positionals: [0, 1],
  run: async (call) => {
    const [name = 'assistant'] = call.positionals;
    const format = wordOption(call, 'format', ['gbnf', 'lark']) ?? 'gbnf';
    const form = wordOption(call, 'form', ['full', 'compact']);
    const ask = await runningSystem(call);
    const { text, notes } =
      ask === null
        ? grammarDocument(bundledAgent(name, call), { format, form: form ?? null })
        : await asked(ask, name, format, form);
    if (call.json) {
      call.print(JSON.stringify({ agent: name, format, grammar: text, notes }));
      return EXIT.ok;
    }
    call.print(text.replace(/\n$/, ''));
    for (const note of notes) call.tell(note);
    return EXIT.ok;
  },
};

async function asked(ask: Ask, name: string, format: Notation, form: Form): Promise<AgentGrammar> {
  const query = new URLSearchParams(form === undefined ? { format } : { format, protocol_form: form });
  const accept = { headers: { accept: 'application/json' } };
  const answer = await ask(`/agents/${encodeURIComponent(name)}/grammar?${query}`, accept);
  const { grammar, notes } = (await answer.json()) as { readonly grammar: string; readonly notes: readonly string[] };
  return { text: grammar, notes };
}
