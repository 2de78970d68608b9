/** OpenAI: chat completions and responses (E2). One surface, because user tokens are for both. */
import type { Surface } from '../surface.ts';
import { ChatDocument, ChatFold } from './chat-fold.ts';
import { ChatState } from './chat-state.ts';
import { DONE, errorOf, lostFrame } from './error.ts';
import { ResponseDocument, ResponseFold } from './responses/response-fold.ts';
import { ResponseState } from './responses/response-state.ts';

export { readChatCompletion } from './chat-request.ts';
export { readCancelResponse, readResponse, readRetrieveResponse } from './responses/response-request.ts';

export const openai: Surface = {
  name: 'openai',
  streamHeaders: {},
  // A response says which one it follows, so the client makes progress in any case.
  endsAtWait: ({ api }) => api !== 'responses',
  fold: (run) => (run.options['api'] === 'responses' ? new ResponseFold(run) : new ChatFold(run)),
  document: {
    events: [...new Set([...ChatState.EVENTS, ...ResponseState.EVENTS])],
    of: (run) => (run.options['api'] === 'responses' ? new ResponseDocument(run) : new ChatDocument(run)),
  },
  lost: lostFrame('connection_lost') + DONE,
  error: errorOf,
};
