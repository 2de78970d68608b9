import { promptDocument } from '../../src/dry-run/agent-documents.ts';
import type { PromptDocument } from '../../src/dry-run/agent-documents.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { TRUST_HELP, TRUST_OPTION } from '../project/code-tools.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';

export const command: Command = {
  name: 'prompt',
  summary: 'Prints the system prompt of an agent, and the tokens of its sections to stderr.',
  usage: '[<agent>] [--parts] [--trust]',
  help: `  <agent>          default: assistant; of the running system, else of the project's manifests
  --parts          prints the parts of the prompt with their estimated tokens, instead of its text
${TRUST_HELP}`,
  example: 'cortex prompt assistant --parts',
  options: { parts: { type: 'boolean' }, ...TRUST_OPTION },
  isRemote: true,
  positionals: [0, 1],
  run: async (call) => {
    const document = await read(call.positionals[0] ?? 'assistant', call);
    if (call.json) {
      call.print(JSON.stringify(document));
      return EXIT.ok;
    }
    for (const warning of document.warnings) call.tell(`warning  ${warning}`);
    if (call.values['parts'] === true) {
      for (const line of partLines(document)) call.print(line);
      return EXIT.ok;
    }
    const { prompt, characters, tokens, sections } = document;
    call.print(prompt);
    call.tell(`\n${characters} characters, about ${tokens} tokens`);
    for (const section of sections) call.tell(`${String(section.tokens).padStart(7)}  ${section.title}`);
    return EXIT.ok;
  },
};

const NOTES = { built_in: '', replaced: 'replaced', left_out: 'left out' } as const;

function partLines({ parts, tokens }: PromptDocument): string[] {
  const width = Math.max(...parts.map(({ id }) => id.length));
  const rows = parts.map(({ id, state, tokens: own, share }) => {
    const figures = `${String(own).padStart(7)}  ${`${(share * 100).toFixed(1)}%`.padStart(6)}`;
    return `${figures}  ${id.padEnd(width)}  ${NOTES[state]}`.trimEnd();
  });
  return [...rows, `${String(tokens).padStart(7)}  100.0%  all parts, estimated`];
}

async function read(name: string, call: CommandCall): Promise<PromptDocument> {
  const ask = await runningSystem(call);
  if (ask === null) return promptDocument(bundledAgent(name, call), null, Date.now());
  const accept = { headers: { accept: 'application/json' } };
  return (await (await ask(`/agents/${encodeURIComponent(name)}/prompt`, accept)).json()) as PromptDocument;
}
