/** The Agents SDK's chat agent, as in its introduction, with the same model server. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { AIChatAgent } from '@cloudflare/ai-chat';
import { convertToModelMessages, streamText } from 'ai';

export class ChatAgent extends AIChatAgent<{ LLM_BASE_URL: string }> {
  override async onChatMessage(): Promise<Response> {
    const provider = createOpenAICompatible({ name: 'bench', baseURL: this.env.LLM_BASE_URL });
    const result = streamText({
      model: provider('bench'),
      messages: await convertToModelMessages(this.messages),
    });
    return result.toUIMessageStreamResponse();
  }
}
