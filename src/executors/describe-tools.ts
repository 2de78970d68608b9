/** `describe_tools`: gives the model the parameters of tools that its prompt lists in short form (L4). */
import type { ActionOutcome } from '../domain/action.ts';
import { failure } from '../domain/failure.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import { nearestNames } from '../domain/nearest.ts';
import type { WorkMeter } from '../domain/work.ts';
import type { ActionContext, DescribableTools } from './executor.ts';
import { failureOf, wrongParameter } from './failure.ts';

/** Work of comparing the words of a search with one tool, in addition to its characters. */
const STEPS_PER_TOOL = 2;

/**
 * Describes the tools of these names, and the first ones that the words of `search` find; of the other ones it finds, the
 * names and summaries. The tools are those of the run's pinned manifests.
 *
 * @returns `{tools: [{name, summary, note?, parameters?, returns?, example?}], unknown?: [{name, did_you_mean}], left_out?}`
 */
export async function describeTools(
  { names: written, search }: JsonObject,
  { tools, pacer, signal }: Pick<ActionContext, 'tools' | 'pacer' | 'signal'>,
): Promise<ActionOutcome> {
  if (tools == null) return failure('not_available', 'All tools are described', { beforeDispatch: true });
  const names = typeof written === 'string' ? [written] : (written ?? []);
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
    return wrongParameter('names', 'a list of names of tools', written);
  }
  if (search !== undefined && typeof search !== 'string') return wrongParameter('search', 'words', search);
  if (names.length === 0 && (search ?? '').trim() === '') {
    return wrongParameter('names', 'a list of names of tools, or "search" with words', written);
  }
  try {
    const work = (meter: WorkMeter): JsonObject => describe(names, search ?? '', tools, meter);
    return { ok: true, output: await pacer.run(limits.describeToolsSteps, work, signal) };
  } catch (fault) {
    return failureOf(fault, signal, 'internal');
  }
}

function describe(names: readonly string[], search: string, tools: DescribableTools, meter: WorkMeter): JsonObject {
  const asked = new Set(names);
  const known = [...asked].flatMap((name) => tools.known.get(name) ?? []);
  const unknown = [...asked].filter((name) => !tools.known.has(name)).slice(0, limits.describedTools);
  const found = search.trim() === '' ? [] : find(search, tools, meter).filter(({ name }) => !asked.has(name));
  const answer = new Answer(tools);
  for (const tool of known) answer.describe(tool, meter);
  for (const [index, tool] of found.slice(0, limits.foundTools).entries()) {
    if (index < limits.foundToolsDescribed) answer.describe(tool, meter);
    else answer.list(tool);
  }
  return {
    tools: answer.tools,
    ...(unknown.length === 0 ? {} : { unknown: unknown.map((name, index) => unknownTool(name, index, tools, meter)) }),
    ...answer.leftOut(found.length - limits.foundTools),
  };
}

/** The tools of one answer, up to its limits. */
class Answer {
  readonly tools: JsonObject[] = [];
  readonly #source: DescribableTools;
  readonly #left: string[] = [];
  #described = 0;
  #chars = 0;

  constructor(source: DescribableTools) {
    this.#source = source;
  }

  describe(tool: ToolDefinition, meter: WorkMeter): void {
    if (this.#described >= limits.describedTools) return void this.#left.push(tool.name);
    const description = this.#source.describe(tool);
    meter.chargeChars(description.parameters.length);
    if (this.#add({ ...description })) this.#described += 1;
    else this.#left.push(tool.name);
  }

  list(tool: ToolDefinition): void {
    const { name, summary } = this.#source.list(tool);
    if (!this.#add({ name, summary })) this.#left.push(name);
  }

  /** @param notFound results of the search beyond the limit */
  leftOut(notFound: number): JsonObject {
    const more = notFound > 0 ? `${notFound} more tools match: use other words` : '';
    if (this.#left.length === 0) return more === '' ? {} : { left_out: more };
    const names = this.#left.slice(0, limits.describedTools).join(', ');
    const rest = this.#left.length > limits.describedTools ? ', …' : '';
    const left = `left out for length, describe them separately: ${names}${rest}`;
    return { left_out: more === '' ? left : `${left}; ${more}` };
  }

  /** @returns false if it does not fit */
  #add(tool: JsonObject): boolean {
    const { length } = JSON.stringify(tool);
    // The first one fits always: it has limits of its own.
    if (this.tools.length > 0 && this.#chars + length > limits.describedToolsChars) return false;
    this.#chars += length;
    this.tools.push(tool);
    return true;
  }
}

/** The tools that have at least one of the words in name or summary, best first; with equal scores in the order of the definitions. */
function find(
  search: string,
  { known }: DescribableTools,
  meter: WorkMeter,
  summaryChars: number = limits.toolSearchSummaryChars,
): readonly ToolDefinition[] {
  const words = wordsOf(search);
  if (words.length === 0) return [];
  const scored: { readonly tool: ToolDefinition; readonly score: number }[] = [];
  for (const tool of known.values()) {
    const name = tool.name.toLowerCase();
    const summary = tool.summary.slice(0, summaryChars).toLowerCase();
    meter.chargeChars((name.length + summary.length) * words.length);
    meter.charge(STEPS_PER_TOOL);
    const score = words.reduce(
      (sum, word) => sum + (name.includes(word) ? 3 : 0) + (summary.includes(word) ? 1 : 0),
      0,
    );
    if (score > 0) scored.push({ tool, score });
  }
  // The order of equal ones is kept.
  return scored.toSorted((a, b) => b.score - a.score).map(({ tool }) => tool);
}

function wordsOf(search: string): readonly string[] {
  const words =
    search
      .slice(0, limits.toolSearchChars)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set(words)].slice(0, limits.toolSearchWords);
}

function unknownTool(name: string, index: number, tools: DescribableTools, meter: WorkMeter): Json {
  const similar = index < limits.unknownToolsSuggested ? similarNames(name, tools, meter) : [];
  return { name: name.slice(0, limits.excerptChars), did_you_mean: similar };
}

function similarNames(name: string, tools: DescribableTools, meter: WorkMeter): string[] {
  // Among thousands, the nearest names are those with the same words.
  const found = find(name, tools, meter, 0).slice(0, limits.foundTools);
  const names = [...found.map((tool) => tool.name), ...tools.known.keys()];
  const near = nearestNames(name, names);
  return near.length > 0 ? near : names.slice(0, Math.min(limits.foundToolsDescribed, found.length));
}
