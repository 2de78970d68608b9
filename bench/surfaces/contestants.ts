/** What is compared: the same scripted model behind several servers and protocols. */
import type { StagedSystem } from '../makespan/staged-system.ts';

/** The protocol text of one response costs the model these tokens more than the bare text. */
export type Text = 'bare' | 'protocol';

export interface Contestant {
  readonly name: string;
  readonly text: Text;
  /** Sends the user's message; the answer is a stream. */
  readonly ask: (prompt: string, n: number, tokensPerSecond: number) => Promise<Response>;
}

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

const uiMessage = (prompt: string, n: number): object => ({
  id: `m${n}`,
  role: 'user',
  parts: [{ type: 'text', text: prompt }],
});

export function contestants(
  system: StagedSystem,
  agent: string,
  aiSdkUrl: string,
  aiSdkVersion: string,
  modelUrl: string,
): readonly Contestant[] {
  const chat = (prompt: string): object => ({
    model: agent,
    stream: true,
    messages: [{ role: 'user', content: prompt }],
  });
  const ask = (prompt: string, n: number, id: string): Promise<Response> =>
    post(`${system.url}/ai/${agent}/chat`, { id, trigger: 'submit-message', messages: [uiMessage(prompt, n)] });
  return [
    {
      name: 'the model itself (chat completions)',
      text: 'bare',
      ask: (prompt) => post(`${modelUrl}/chat/completions`, chat(prompt)),
    },
    {
      name: `AI SDK ${aiSdkVersion}: its own server`,
      text: 'bare',
      ask: (prompt, n) => post(aiSdkUrl, { messages: [uiMessage(prompt, n)] }),
    },
    { name: 'Cortex Edge: AI SDK', text: 'protocol', ask: (prompt, n) => ask(prompt, n, `chat${n}`) },
    {
      name: 'Cortex Edge: AI SDK, next message of a chat',
      text: 'protocol',
      ask: (prompt, n, pace) => ask(prompt, n, `chat at ${pace}`),
    },
    {
      name: 'Cortex Edge: AI SDK, next message, text without tags',
      text: 'bare',
      ask: (prompt, n, pace) => ask(prompt, n, `bare chat at ${pace}`),
    },
    {
      name: 'Cortex Edge: chat completions',
      text: 'protocol',
      ask: (prompt) => post(`${system.url}/v1/chat/completions`, chat(prompt)),
    },
    {
      name: 'Cortex Edge: Responses',
      text: 'protocol',
      ask: (prompt) => post(`${system.url}/v1/responses`, { model: agent, stream: true, input: prompt }),
    },
    {
      name: 'Cortex Edge: AG-UI',
      text: 'protocol',
      ask: (prompt, n) =>
        post(`${system.url}/agui/${agent}`, {
          threadId: `thread${n}`,
          runId: `run${n}`,
          state: {},
          tools: [],
          context: [],
          forwardedProps: {},
          messages: [{ id: `m${n}`, role: 'user', content: prompt }],
        }),
    },
    ...(['full', 'compact'] as const).map((format): Contestant => ({
      name: `Cortex Edge: own events, ${format}`,
      text: 'protocol',
      ask: async (prompt) => {
        const created = await post(`${system.url}/agent/${agent}/session`, {});
        const { session_id: id } = (await created.json()) as { session_id: string };
        return await post(`${system.url}/agent/session/${id}/message?format=${format}`, { content: prompt });
      },
    })),
  ];
}
