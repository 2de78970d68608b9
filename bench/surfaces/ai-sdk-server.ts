/** The AI SDK's own server, in a process of its own: a model's text as a UI message stream, without actions. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createOpenAI } from '@ai-sdk/openai';
import { convertToModelMessages, streamText } from 'ai';
import type { UIMessage } from 'ai';

const [, , baseURL = ''] = process.argv;
const openai = createOpenAI({ baseURL, apiKey: 'none' });

const server = createServer((incoming, outgoing) => {
  outgoing.socket?.setNoDelay(true);
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => parts.push(part));
  incoming.on('end', () => {
    const { messages } = JSON.parse(Buffer.concat(parts).toString()) as { messages: UIMessage[] };
    void answer(messages).then((response) => {
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.flushHeaders();
      if (response.body === null) return outgoing.end();
      return Readable.fromWeb(response.body).pipe(outgoing);
    });
  });
});

async function answer(messages: UIMessage[]): Promise<Response> {
  const result = streamText({ model: openai.chat('scripted'), messages: await convertToModelMessages(messages) });
  return result.toUIMessageStreamResponse();
}

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit(0));
