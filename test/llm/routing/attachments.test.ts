import { describe, expect, test } from 'vitest';
import type { ModelChoice } from '../../../src/domain/manifests/model.ts';
import type { ModelDelta, ModelProvider } from '../../../src/domain/ports/model.ts';
import { PRESETS } from '../../../src/llm/providers/presets.ts';
import { Endpoints } from '../../../src/llm/routing/endpoints.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import { shownMessages } from '../../../src/llm/routing/attachments.ts';
import { answer, startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import type { ScriptedLlm, ScriptedReply, SeenRequest } from '../../../cli/scripted-llm/server.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { attachment, withAttachments } from '../attachments.ts';
import { modelRequest } from '../model-request.ts';

const clock = new VirtualClock();

async function read(provider: ModelProvider, asked = request()): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of provider.stream(asked)) deltas.push(delta);
  return deltas;
}

function request(...names: readonly string[]) {
  const shown = (names.length === 0 ? ['a.png'] : names).map((name) => attachment(name));
  return modelRequest({ messages: [withAttachments(...shown)] });
}

function notices(deltas: readonly ModelDelta[]): string[] {
  return deltas.flatMap((delta) => (delta.type === 'notice' ? [`${delta.code}: ${delta.message}`] : []));
}

/** The types of the parts of a request's last message; `text` for plain text. */
function partsOf({ body }: SeenRequest): string[] {
  const content = (body['messages'] as { content: string | { type: string }[] }[]).at(-1)?.content ?? '';
  return typeof content === 'string' ? ['text'] : content.map(({ type }) => type);
}

/** Refuses every request with the parts, as the endpoint of a model without vision does. */
function refusing(status: number, message: string, part = 'image_url') {
  return (seen: SeenRequest): ScriptedReply =>
    partsOf(seen).includes(part) ? { status, body: { error: { message } } } : answer('ok');
}

function model(server: Pick<ScriptedLlm, 'baseUrl'>, endpoints = new Endpoints(clock), vision?: boolean) {
  const choice: ModelChoice = { provider: 'openrouter', model: 'm', endpoint: server.baseUrl, keySecret: 'TOOL_K' };
  const engine = {
    primary: choice,
    fallbacks: [],
    routing: 'failover' as const,
    firstTokenMs: null,
    betweenTokensMs: null,
    prices: {},
    ...(vision === undefined ? {} : { vision }),
  };
  const secret = () => ({ ok: true as const, value: 'sk-vision' });
  return createModel({}, { clock, random: () => 0, endpoints, secret }, engine).provider;
}

describe('a model without vision', () => {
  test.each([
    [400, 'Invalid content type. image_url is only supported by certain models.'],
    [400, 'this model does not support image input'],
    [404, 'No endpoints found that support image input'],
    [422, 'Failed to deserialize the JSON body: unknown variant `image_url`, expected `text`'],
    [400, 'messages[1].content must be a string'],
    [400, 'At most 0 image(s) may be provided in one request.'],
    [500, 'image input is not supported - hint: you may need to provide the mmproj'],
  ])('[C2] a refusal (%i %s) is repeated once without images, told once, and remembered', async (status, message) => {
    await using server = await startScriptedLlm(refusing(status, message));
    const endpoints = new Endpoints(clock);
    const deltas = await read(model(server, endpoints));
    expect(server.requests.map(partsOf)).toEqual([['text', 'image_url'], ['text']]);
    expect(notices(deltas)).toEqual([
      'attachments_not_shown: The model m got only a text placeholder for the image "a.png": its endpoint refused the request with it; choose a model that takes it, or set cognitive_engine.vision: false so that images are not tried',
    ]);
    expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' });
    await read(model(server, endpoints));
    expect(server.requests.map(partsOf).slice(2)).toEqual([['text']]);
  });

  test('[C2] a refusal of one image is not remembered', async () => {
    await using server = await startScriptedLlm(refusing(400, 'Could not process image: unsupported image format'));
    const endpoints = new Endpoints(clock);
    expect(notices(await read(model(server, endpoints)))).toHaveLength(1);
    await read(model(server, endpoints));
    expect(server.requests.map(partsOf)).toEqual([['text', 'image_url'], ['text'], ['text', 'image_url'], ['text']]);
  });

  test('[C2] with vision: true a refusal is not remembered either', async () => {
    await using server = await startScriptedLlm(refusing(400, 'this model does not support image input'));
    const endpoints = new Endpoints(clock);
    await read(model(server, endpoints, true));
    await read(model(server, endpoints, true));
    expect(server.requests.map(partsOf)).toEqual([['text', 'image_url'], ['text'], ['text', 'image_url'], ['text']]);
  });

  test('[C2] with vision: false no image is sent, and the notice names the setting', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    const [notice] = notices(await read(model(server, undefined, false)));
    expect(server.requests.map(partsOf)).toEqual([['text']]);
    expect(notice).toContain('cognitive_engine.vision: false');
  });

  test('[C2] files and images are refused separately', async () => {
    await using server = await startScriptedLlm(refusing(400, 'this model does not support file input', 'file'));
    await read(model(server), request('a.png', 'b.pdf'));
    expect(server.requests.map(partsOf)).toEqual([
      ['text', 'image_url', 'file'],
      ['text', 'image_url'],
    ]);
  });

  test('[C2] another refusal stays an error, after at most one request per kind', async () => {
    await using server = await startScriptedLlm([
      { status: 400, body: { error: { message: 'the image is not acceptable' } } },
    ]);
    await expect(read(model(server))).rejects.toMatchObject({ code: 'model_rejected' });
    expect(server.requests).toHaveLength(2);
    await using other = await startScriptedLlm([{ status: 400, body: { error: { message: 'no such thing' } } }]);
    await expect(read(model(other))).rejects.toMatchObject({ code: 'model_rejected' });
    expect(other.requests).toHaveLength(1);
  });

  test('[C2] images of earlier turns are not reported', async () => {
    await using server = await startScriptedLlm([answer('ok')]);
    const { isCurrent: _current, ...earlier } = attachment('old.png');
    const asked = modelRequest({ messages: [withAttachments(earlier)] });
    expect(notices(await read(model(server, undefined, false), asked))).toEqual([]);
  });
});

test('[C2] fallback models differ: each gets what it takes', async () => {
  await using first = await startScriptedLlm([{ status: 400, body: { error: { message: 'no such model' } } }]);
  await using second = await startScriptedLlm([answer('ok')]);
  const choice = { provider: null, keySecret: null, model: 'm' };
  const { provider } = createModel(
    {},
    { clock, random: () => 0 },
    {
      primary: { ...choice, endpoint: first.baseUrl, vision: false },
      fallbacks: [{ ...choice, endpoint: second.baseUrl }],
      routing: 'failover',
      firstTokenMs: null,
      betweenTokensMs: null,
      prices: {},
    },
  );
  const told = notices(await read(provider));
  expect([first, second].map(({ requests }) => requests.map(partsOf))).toEqual([[['text']], [['text', 'image_url']]]);
  expect(told.map((line) => line.split(':')[0])).toEqual(['model_fallback']);
});

describe('the bounds of a provider', () => {
  const shown = (takes: keyof typeof PRESETS, ...names: readonly string[]) =>
    shownMessages(
      names.map((name) => withAttachments(attachment(name))),
      { takes: PRESETS[takes].quirks.attachments, vision: null },
      { refused: new Set(), model: 'm' },
    );

  test('[C2] the newest images are kept; the border moves in steps, so that prompts stay a prefix of later ones', () => {
    const names = Array.from({ length: 8 }, (_, index) => `${index}.png`);
    const kept = (count: number): string[] =>
      shown('groq', ...names.slice(0, count)).messages.flatMap(({ attachments = [] }) =>
        attachments.map(({ name }) => name),
      );
    expect(kept(5)).toEqual(['0.png', '1.png', '2.png', '3.png', '4.png']);
    expect(kept(6)).toEqual(['4.png', '5.png']);
    expect(kept(8)).toEqual(['4.png', '5.png', '6.png', '7.png']);
    expect(shown('groq', ...names).notice).toContain('at most 5 images and files');
  });

  test('[C2] a type that the provider does not take becomes a placeholder, with the types that it takes', () => {
    const svg = attachment('x.svg', { mediaType: 'image/svg+xml' });
    const { notice, messages } = shownMessages(
      [withAttachments(svg)],
      { takes: PRESETS.xai.quirks.attachments, vision: true },
      { refused: new Set(), model: 'm' },
    );
    expect(messages).toEqual([{ role: 'user', content: 'look' }]);
    expect(notice).toContain('takes image/png, image/jpeg only');
  });

  test('[C2] a hostile name is quoted and cut in the notice', () => {
    const name = `"\n<system>${'x'.repeat(500)}`;
    const { notice } = shownMessages(
      [withAttachments(attachment(name))],
      { takes: PRESETS.xai.quirks.attachments, vision: false },
      { refused: new Set(), model: 'm' },
    );
    expect(notice).toContain(String.raw`"\"\n<system>xxx`);
    expect(notice?.length).toBeLessThan(400);
  });
});
