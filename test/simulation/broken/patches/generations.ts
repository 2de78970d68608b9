/** Mistakes about what a generation leaves behind: its answer, and the parameters of its calls (N4, P11, P15). */
import type { Patch } from '../patch.ts';

export const GENERATION_PATCHES: readonly Patch[] = [
  {
    name: 'bare text beside an action is an answer',
    file: 'src/engine/generation/generation-blocks.ts',
    find: 'return this.#saw.text && !this.#saw.action && !this.#saw.response;',
    replace: 'return this.#saw.text && !this.#saw.response;',
    invariant: 'whole answer',
  },
  {
    name: 'the bare text of a generation that broke off is an answer',
    file: 'src/scheduler/loop.ts',
    find: 'generation.answered = answered && !brokeOff(finish);',
    replace: 'generation.answered = answered;',
    invariant: 'whole answer',
  },
  {
    name: 'what may be the beginning of a tag is text',
    file: 'src/protocol/parser/parser.ts',
    find: `this.#text.finish(cut || this.#beginsClosing(held) ? '' : held);`,
    replace: `this.#text.finish(this.#beginsClosing(held) ? '' : held);`,
    invariant: 'whole answer',
  },
  {
    name: 'a repeated attempt has no parameters',
    file: 'src/engine/actions/attempts.ts',
    find: '      parameters,\n      ...(isPrepared && codeToolOf(action, context.resolved) !== null ? { parsed: true as const } : {}),',
    replace:
      '      parameters: attempt > 1 ? {} : parameters,\n      ...(isPrepared && codeToolOf(action, context.resolved) !== null ? { parsed: true as const } : {}),',
    invariant: 'complete calls',
  },
];
