/** OpenAI: chat completions (E2). */
import type { Surface } from '../surface.ts';
import { ChatDocument, ChatFold } from './chat-fold.ts';
import { ChatState } from './chat-state.ts';
import { errorOf, lostBody } from './error.ts';

export { readChatCompletion } from './chat-request.ts';

export const openai: Surface = {
  name: 'openai',
  streamHeaders: {},
  fold: (run) => new ChatFold(run),
  document: { events: ChatState.EVENTS, of: (run) => new ChatDocument(run) },
  lost: `data: ${JSON.stringify(lostBody('connection_lost'))}\n\ndata: [DONE]\n\n`,
  error: errorOf,
};
