import { expect, test } from 'vitest';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { createOpenAiProvider } from '../../../src/llm/providers/openai.ts';
import { GENERIC, PRESET_NAMES, PRESETS } from '../../../src/llm/providers/presets.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import { answer, startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { attachment, withAttachments } from '../attachments.ts';
import { modelRequest } from '../model-request.ts';

const PNG = `data:image/png;base64,${btoa('a.png')}`;
const PDF = `data:application/pdf;base64,${btoa('b.pdf')}`;
const TEXT = { type: 'text', text: 'look' };
const OBJECT = { type: 'image_url', image_url: { url: PNG } };
const STRING = { type: 'image_url', image_url: PNG };
const FILE = { type: 'file', file: { filename: 'b.pdf', file_data: PDF } };
const DOCUMENT = { type: 'document_url', document_url: PDF, document_name: 'b.pdf' };

/** The parts of a user message with an image and a PDF, as sent to each provider. */
const WIRE = {
  openai: [TEXT, OBJECT, FILE],
  anthropic: [TEXT, OBJECT],
  gemini: [TEXT, OBJECT],
  groq: [TEXT, OBJECT],
  mistral: [TEXT, STRING, DOCUMENT],
  deepseek: [TEXT, OBJECT],
  openrouter: [TEXT, OBJECT, FILE],
  xai: [TEXT, OBJECT],
  'workers-ai': [TEXT, OBJECT],
  'ai-gateway': [TEXT, OBJECT],
  ollama: [TEXT, OBJECT],
  vllm: [TEXT, OBJECT],
  'llama.cpp': [TEXT, OBJECT],
} as const satisfies Record<(typeof PRESET_NAMES)[number], unknown>;

const clock = new VirtualClock();
const asked = modelRequest({
  messages: [
    { role: 'system', content: 'S' },
    withAttachments(attachment('a.png'), attachment('b.pdf')),
    { role: 'user', content: 'plain' },
  ],
});

async function read(stream: AsyncIterable<ModelDelta>): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of stream) deltas.push(delta);
  return deltas;
}

test.each(PRESET_NAMES)('[C2] %s gets images and PDFs in its own form, through the client package', async (preset) => {
  await using server = await startScriptedLlm([answer('ok')]);
  const { quirks } = PRESETS[preset];
  const shared = { baseUrl: server.baseUrl, apiKey: null, defaultModel: 'm', clock, random: () => 0 };
  await read(createOpenAiProvider({ ...shared, quirks }).stream(asked));
  expect(server.requests).toHaveLength(1);
  expect(server.requests[0]?.body['messages']).toEqual([
    { role: 'system', content: 'S' },
    { role: 'user', content: WIRE[preset] },
    { role: 'user', content: 'plain' },
  ]);
});

test('[C2] an unknown endpoint gets images as objects and no PDFs', async () => {
  await using server = await startScriptedLlm([answer('ok')]);
  const config = { baseUrl: server.baseUrl, model: 'm' };
  await read(createModel(config, { clock, random: () => 0 }).provider.stream(asked));
  expect(server.requests[0]?.body['messages']).toContainEqual({ role: 'user', content: [TEXT, OBJECT] });
});

test('[C2] the bytes arrive unchanged, also across the pieces in which they are encoded', async () => {
  const bytes = Uint8Array.from({ length: 100_001 }, (_, index) => (index * 31) % 256);
  await using server = await startScriptedLlm([answer('ok')]);
  const image = attachment('a.png', { size: bytes.length, read: async () => bytes });
  const config = { baseUrl: server.baseUrl, model: 'm' };
  const messages = [withAttachments(image)];
  await read(createModel(config, { clock, random: () => 0 }).provider.stream(modelRequest({ messages })));
  const sent = (server.requests[0]?.body ?? {}) as { messages?: { content: { image_url?: { url: string } }[] }[] };
  const url = sent.messages?.[0]?.content[1]?.image_url?.url ?? '';
  expect(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').equals(bytes)).toBe(true);
});

test('[C2] an image whose bytes are lost is left out; its placeholder stays in the text', async () => {
  await using server = await startScriptedLlm([answer('ok')]);
  const lost = attachment('a.png', { read: () => Promise.reject(new Error('lost')) });
  const config = { baseUrl: server.baseUrl, model: 'm' };
  const messages = [withAttachments(lost)];
  await read(createModel(config, { clock, random: () => 0 }).provider.stream(modelRequest({ messages })));
  expect(server.requests[0]?.body['messages']).toEqual([{ role: 'user', content: 'look' }]);
});

test('[C2] every preset states types and bounds that fit into the bounds of one request', () => {
  for (const name of PRESET_NAMES) {
    const { imageTypes, files, fileTypes, most, bytes, bytesEach } = PRESETS[name].quirks.attachments;
    expect(imageTypes).toEqual(expect.arrayContaining(['image/png', 'image/jpeg']));
    expect(fileTypes.length > 0).toBe(files !== null);
    expect(most).toBeLessThanOrEqual(GENERIC.attachments.most);
    expect(Math.max(bytes, bytesEach)).toBeLessThanOrEqual(GENERIC.attachments.bytes);
  }
});

test('[C2] the bytes of what a provider does not take are not read', async () => {
  await using server = await startScriptedLlm([answer('ok')]);
  const pdf = attachment('b.pdf');
  const large = attachment('large.png', { size: 3_000_000 });
  const provider = createOpenAiProvider({
    baseUrl: server.baseUrl,
    apiKey: null,
    defaultModel: 'm',
    clock,
    random: () => 0,
    quirks: PRESETS.groq.quirks,
  });
  await read(provider.stream(modelRequest({ messages: [withAttachments(pdf, large)] })));
  expect([pdf.reads.count, large.reads.count]).toEqual([0, 0]);
});
