/** Mistakes with clients of other protocols. */
import type { Patch } from '../patch.ts';

const SURFACE = 'src/http/surfaces/session-surface.ts';
const PLACE = 'src/http/surfaces/answer-place.ts';
const AI_SDK = 'src/surfaces/ai-sdk/fold.ts';
const AG_UI = 'src/surfaces/ag-ui/fold.ts';
const CHAT = 'src/surfaces/openai/chat-state.ts';
const RESPONSES = 'src/surfaces/openai/responses/response-state.ts';

export const PROTOCOL_PATCHES: readonly Patch[] = [
  {
    name: 'a client that has answered gets the run from its beginning',
    file: PLACE,
    find: `      if ((isAsking || endsAtWait) && open.size > 0) after = seq;`,
    replace: ``,
    invariant: 'same message',
  },
  {
    name: 'a client that has answered gets what follows the last wait, which it may not have seen',
    file: PLACE,
    find: `  return answered.size > 0 ? wait : after;`,
    replace: `  return Math.max(wait, after);`,
    invariant: 'same message',
  },
  {
    name: 'a client that follows gets only new events',
    file: SURFACE,
    find: `    after: run.firstSeq - 1,`,
    replace: `    after: Math.max(run.firstSeq - 1, after),`,
    invariant: 'same message',
  },
  {
    name: 'parts are in the order of their text, not of their blocks',
    file: AI_SDK,
    find: `if (text.isShown || opened >= segment) continue;`,
    replace: `if (text.isShown || opened >= 0) continue;`,
    invariant: 'same message',
  },
  {
    name: 'text of a message is in the order in which it comes',
    file: CHAT,
    find: `if (!block.isClosed) break;`,
    replace: `if (!block.isClosed) continue;`,
    invariant: 'same message',
  },
  {
    name: 'text is cut as it comes',
    file: RESPONSES,
    find: `for (let end = endOfPiece(block.rest, 0); end !== null; end = endOfPiece(block.rest, from)) {`,
    replace: `for (let end = block.rest.length; end > from; end = from) {`,
    invariant: 'same message',
  },
  {
    name: 'an unfinished block of a response does not hold back what follows',
    file: RESPONSES,
    find: `else if (this.#front === null) this.#show(event);`,
    replace: `else if (this.#front === null || !isStart(event)) this.#show(event);`,
    invariant: 'same message',
  },
  {
    name: 'a client that comes back gets its messages a second time',
    file: AG_UI,
    find: `    if (messages?.some(isGivenAgain) !== true) return [];`,
    replace: `    if (messages !== undefined) return [];`,
    invariant: 'same message',
  },
  {
    name: 'a run that has not ended counts as one that has',
    file: AI_SDK,
    find: `return { type: 'error', errorText: LOST[how] };`,
    replace: `return { type: 'finish', finishReason: 'stop' };`,
    invariant: 'no false success',
  },
  {
    name: 'an answer that was cut off is a success',
    file: CHAT,
    find: `event.data.iterations === this.#cutIn ? 'unfinished' : 'completed'`,
    replace: `'completed'`,
    invariant: 'no false success',
  },
  {
    name: 'a cancelled run is a success',
    file: AG_UI,
    find: `? { ...finished, outcome: { type: 'cancelled' } }`,
    replace: `? { ...finished, outcome: success }`,
    invariant: 'no false success',
  },
  {
    name: 'parts stay open at the end of a stream',
    file: AI_SDK,
    find: `    const chunks = [...resumed, ...this.#closing(), this.#last(how)];`,
    replace: `    const chunks = [...resumed, this.#last(how)];`,
    invariant: 'closed parts',
  },
  {
    name: 'an action is shown again with its result',
    file: AI_SDK,
    find: `    if (this.#tools.has(key)) return [];`,
    replace: ``,
    invariant: 'closed parts',
  },
  {
    name: 'a step stays open if the run waits',
    file: AG_UI,
    find: `    return [...blocks, ...subagents, ...this.#stepEnd()];`,
    replace: `    return [...blocks, ...subagents];`,
    invariant: 'closed parts',
  },
  {
    name: 'a repeated request is another message',
    file: 'src/surfaces/ag-ui/request.ts',
    find: `key: keyOf(input.runId),`,
    replace: 'key: null,',
    invariant: 'everything ends',
  },
];
