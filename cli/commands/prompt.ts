import { promptDocument } from '../../src/dry-run/agent-documents.ts';
import type { PromptDocument } from '../../src/dry-run/agent-documents.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';

export const command: Command = {
  name: 'prompt',
  summary: 'Prints the system prompt of an agent, and the tokens of its sections to stderr.',
  usage: '[<agent>]',
  help: "  <agent>          default: assistant; of the running system, else of the project's manifests",
  example: 'cortex prompt assistant',
  isRemote: true,
  positionals: [0, 1],
  run: async (call) => {
    const document = await read(call.positionals[0] ?? 'assistant', call);
    if (call.json) {
      call.print(JSON.stringify(document));
      return EXIT.ok;
    }
    const { prompt, characters, tokens, sections } = document;
    call.print(prompt);
    call.tell(`\n${characters} characters, about ${tokens} tokens`);
    for (const section of sections) call.tell(`${String(section.tokens).padStart(7)}  ${section.title}`);
    return EXIT.ok;
  },
};

async function read(name: string, call: CommandCall): Promise<PromptDocument> {
  const ask = await runningSystem(call);
  if (ask === null) return promptDocument(bundledAgent(name), null, Date.now());
  const accept = { headers: { accept: 'application/json' } };
  return (await (await ask(`/agents/${encodeURIComponent(name)}/prompt`, accept)).json()) as PromptDocument;
}
