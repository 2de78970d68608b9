/** What comes with a message and is shown in its turn: further tools, and instructions of the application (C3). */
import { isPassed } from '../../domain/manifests/tool.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';
import { parameterLines } from './parameter-lines.ts';
import { oneLine } from './returns.ts';

/** The tools of a message, as shown in the user's turn; empty if there are none (C3). */
export function passedTools({ tools: known }: ResolvedAgent): string {
  const passed = [...known.values()].filter(isPassed);
  const blocks = passed.map(({ name, summary, parameters }) =>
    [`## ${name}`, oneLine(summary), ...parameterLines(parameters, '')].join('\n'),
  );
  if (blocks.length === 0) return '';
  const title = 'For this message you have further tools (type="tool"). The user\'s program executes them:';
  return `<system>${escapeReservedTags(sanitizeText([title, ...blocks].join('\n')), 'reserved')}</system>`;
}

/**
 * The instructions of a message, as shown in its turn; empty if there are none. They are behind the system prompt, which
 * stays the same for all messages.
 */
export function passedInstructions({ instructions }: ResolvedAgent): string {
  if (instructions === undefined) return '';
  const title = 'Instructions of the application for this message:';
  return `<system>${title}\n${escapeReservedTags(sanitizeText(instructions), 'reserved')}</system>`;
}
