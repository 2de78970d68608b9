/** The prompt of an agent with many tools, in full and with tools in short form (L4). */
import { performance } from 'node:perf_hooks';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import { limits } from '../../src/domain/limits.ts';
import { buildSystemPrompt } from '../../src/protocol/prompt/prompt.ts';
import { agentOf, largeTools } from '../../test/support/many-tools.ts';

const COUNTS = [10, 100, 1_000, 10_000];
/** The whole prompt of more tools is too large for a tokenizer. */
const MOST_IN_FULL = 1_000;
const ROUNDS = 5;

/** Rows: tools, tokens in full, tokens in short form, milliseconds of the first prompt of a run. */
export function toolPrompts(tokensOf: (text: string) => number): string[][] {
  return COUNTS.map((count) => {
    const tools = largeTools(count);
    const agent = (toolTokens?: number): ResolvedAgent =>
      agentOf(tools, toolTokens === undefined ? {} : { toolTokens }, {}, false);
    const times = Array.from({ length: ROUNDS }, () => {
      const resolved = agent();
      const start = performance.now();
      buildSystemPrompt(resolved);
      return performance.now() - start;
    });
    return [
      String(count),
      count > MOST_IN_FULL ? '' : String(tokensOf(buildSystemPrompt(agent(limits.promptToolMostTokens)))),
      String(tokensOf(buildSystemPrompt(agent()))),
      Math.min(...times).toFixed(1),
    ];
  });
}
