/** Mistakes in the examples that an author wrote for a prompt: the model would copy them (L4). */
import type { RejectionCode } from '../domain/action.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import { createParser } from '../protocol/parser/parser.ts';
import { promptParts } from '../protocol/prompt/prompt.ts';

/** Examples are separate conversations, so their ids may be the same. */
const ALLOWED: ReadonlySet<RejectionCode> = new Set(['duplicate_id']);

/** What the parser rejects in the part `examples` of the manifest; empty for the built-in examples, which are tested. */
export function exampleWarnings(resolved: ResolvedAgent): readonly string[] {
  const part = promptParts(resolved).find(({ id }) => id === 'examples');
  if (part?.state !== 'replaced') return [];
  const parser = createParser({ json: 'strict', actInReasoning: false });
  return [...parser.feed(part.text), ...parser.end()]
    .flatMap((event) =>
      event.type === 'action_rejected' && !ALLOWED.has(event.rejection.code) ? [event.rejection.message] : [],
    )
    .slice(0, limits.manifestProblems)
    .map((message) => `prompt.examples: ${message}`);
}
