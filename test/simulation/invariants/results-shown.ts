import { isJsonObject, parseJson } from '../../../src/domain/json.ts';
import type { ShownResult } from '../observation.ts';
import { scriptOf } from '../script.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const resultsShown: Invariant = {
  name: 'results shown',
  holds: 'A result of a client that was accepted is in every later request of its run, also after a crash.',
  *check(seen) {
    const tokens = new Map<string, string>();
    for (const event of seen.events) {
      if (event.type === 'client_tool_called') tokens.set(event.data.call_id, event.action_id);
    }
    const answers = factsOf(seen, 'call_answered').filter(({ code }) => code === 'accepted');
    for (const answer of answers) {
      const token = tokens.get(answer.call) ?? '';
      const script = scriptOf(seen.history.messages, token);
      // The result of a fire_and_forget action is never shown.
      if (script === null || script.mode === 'fire_and_forget') continue;
      const place = /^m(\d+)g/.exec(token)?.[1];
      for (const fact of seen.facts.slice(seen.facts.indexOf(answer))) {
        if (fact.type !== 'model_called' || fact.message !== Number(place) || fact.results === undefined) continue;
        const shown = fact.results.find((result) => result.token === token);
        if (shown === undefined || !isOf(answer.result, shown)) {
          yield `the result ${answer.result} of ${token} was accepted, and call ${fact.call} shows ${JSON.stringify(shown ?? null)}`;
        }
      }
    }
  },
};

function isOf(result: string, { status, text }: ShownResult): boolean {
  const posted = parseJson(result);
  if (!isJsonObject(posted)) return false;
  const { output, error } = posted;
  if (isJsonObject(error)) return status === 'failed' && text.includes(String(error['message']));
  return status === 'completed' && text === (typeof output === 'string' ? output : JSON.stringify(output));
}
