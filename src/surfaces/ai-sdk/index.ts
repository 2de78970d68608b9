/** The AI SDK: `useChat` and `Chat` with the default transport (E1). */
import type { Surface } from '../surface.ts';
import { AiSdkFold, LOST_FRAMES } from './fold.ts';
import { MESSAGE_EVENTS, MessageFold } from './message.ts';

export { readChat, readMessages, readStop, readStream } from './request.ts';

export const aiSdk: Surface = {
  name: 'ai-sdk',
  streamHeaders: { 'x-vercel-ai-ui-message-stream': 'v1' },
  fold: (run) => new AiSdkFold(run),
  conversation: { events: MESSAGE_EVENTS, of: (turn) => new MessageFold(turn) },
  lost: LOST_FRAMES,
  // The client shows the body as the message of its error.
  error: ({ message, code }) => ({ body: `${message} (${code})`, contentType: 'text/plain; charset=utf-8' }),
};
