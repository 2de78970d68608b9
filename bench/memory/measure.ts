/** Runs a conversation with the real session, prompts and summaries, and measures what the model was sent. */
import type { Json } from '../../src/domain/json.ts';
import type { MemoryPolicy } from '../../src/domain/manifests/agent.ts';
import type { ModelDelta, ModelRequest } from '../../src/domain/ports/model.ts';
import { runText, say, sessionKit } from '../../test/support/session-kit.ts';
import type { SessionKit } from '../../test/support/session-kit.ts';
import type { LongConversation, PlantedFact } from './conversation.ts';
import { summaryFor } from './summariser.ts';

/** Shares are between 0 and 1. Tokens are those of the messages of a request. */
export interface Measured {
  readonly meanTokens: number;
  readonly lastTokens: number;
  /** How much of a prompt is the beginning of the one before it, so that a provider can cache it. */
  readonly sharedTokens: number;
  /** Facts whose current value is in the last prompt, and those that an action can read by name. */
  readonly shown: number;
  readonly reachable: number;
  readonly summaries: number;
  /** Input and output of all summaries. */
  readonly summaryTokens: number;
}

/** Turns that one action reads. */
const READ_AT_ONCE = 10;

export async function measure(
  { messages, answers, facts }: LongConversation,
  memory: MemoryPolicy,
  countText: (text: string) => number,
): Promise<Measured> {
  const counted = new Map<string, number>();
  const count = (text: string): number => {
    let tokens = counted.get(text);
    if (tokens === undefined) counted.set(text, (tokens = countText(text)));
    return tokens;
  };
  const prompts: { readonly tokens: number; readonly shared: number }[] = [];
  let before: ModelRequest['messages'] = [];
  let last = '';
  let summaries = 0;
  let summaryTokens = 0;
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, memory }),
    async *stream(request): AsyncGenerator<ModelDelta> {
      const texts = request.messages.map(({ content }) => content);
      let answer: string;
      if (request.agent === null) {
        answer = summaryFor(texts.join('\n'), count);
        summaries += 1;
        summaryTokens += count(texts.join('\n')) + count(answer);
      } else {
        const sum = (list: readonly string[]): number => list.reduce((total, text) => total + count(text), 0);
        const same = texts.findIndex((text, at) => before[at]?.content !== text);
        prompts.push({ tokens: sum(texts), shared: sum(texts.slice(0, same === -1 ? texts.length : same)) });
        before = request.messages;
        last = texts.join('\n');
        answer = `<response final="true">${answers[prompts.length - 1] ?? ''}</response>`;
      }
      yield { type: 'text', text: answer };
      yield { type: 'finish', reason: 'stop' };
    },
  });
  for (const message of messages) {
    await say(kit, message);
    await kit.settled();
  }
  const read = await turnsOf(kit, facts);
  const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;
  return {
    meanTokens: mean(prompts.map(({ tokens }) => tokens)),
    lastTokens: prompts.at(-1)?.tokens ?? 0,
    sharedTokens: mean(prompts.slice(1).map(({ tokens, shared }) => shared / tokens)),
    shown: mean(facts.map(({ value }) => (last.includes(value) ? 1 : 0))),
    reachable: mean(facts.map(({ value }) => (read.includes(value) ? 1 : 0))),
    summaries,
    summaryTokens,
  };
}

/** What an action gets that names the turns of all facts. */
async function turnsOf(kit: SessionKit, facts: readonly PlantedFact[]): Promise<string> {
  const read: Json[] = [];
  const turns = facts.map(({ turn }) => turn);
  for (let at = 0; at < turns.length; at += READ_AT_ONCE) {
    const value = turns.slice(at, at + READ_AT_ONCE).map((turn) => `$turn_${turn}`);
    const call = JSON.stringify({ name: 'echo', parameters: { value } });
    const { actions } = await runText(kit, `<action type="tool" mode="async" id="read${at}">${call}</action>`);
    read.push(actions[0]?.output ?? null);
  }
  return JSON.stringify(read);
}
