/** Images and files in the results of actions: what the model sees of them (C2). */
import { describe, expect, test, vi } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import { shownResult } from '../../../src/engine/generation/result-files.ts';
import { toolOf } from '../../support/definitions.ts';
import { say, sessionKit, settle, textOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const BYTES = 'PNG bytes '.repeat(40);
const BASE64 = btoa(BYTES);
const CHART = { name: 'chart.png', content_type: 'image/png', base64: BASE64 };
const DONE = '<response final="true">ok</response>';
const CALL = '<action type="tool" id="plot">{"name":"echo","parameters":{}}</action>';

/** A session whose tool `echo` returns this output. */
async function plotting(output: JsonObject, script: readonly (string | ModelDelta[])[] = [CALL, DONE, DONE, DONE]) {
  return await sessionKit({ script, executors: { tool: async () => ({ ok: true, output }) } });
}

function shownIn({ messages }: ModelRequest): string {
  return messages
    .slice(1)
    .map(({ content }) => content)
    .join('\n');
}

/** The attachments of each message of the last request, by name, with their bytes as text. */
async function attachedOf(kit: SessionKit): Promise<(readonly [role: string, ...files: string[]])[]> {
  const found: [string, ...string[]][] = [];
  for (const { role, attachments = [] } of kit.requests.at(-1)?.messages ?? []) {
    if (attachments.length === 0) continue;
    const files = await Promise.all(
      attachments.map(async ({ name, read }) => `${name}: ${new TextDecoder().decode(await read())}`),
    );
    found.push([role, ...files]);
  }
  return found;
}

async function artifactIds(kit: SessionKit): Promise<string[]> {
  const { artifacts } = await kit.session.read().artifacts(0);
  return artifacts.map(({ id }) => id);
}

describe.each([
  ['files', { title: 'sales', files: [CHART] }],
  ['content', { title: 'sales', content: [{ type: 'image', mimeType: 'image/png', data: BASE64, name: 'chart.png' }] }],
])('[C2] an image in %s of a result', (_form, output) => {
  test('is a marker in the prompt, never base64, and its bytes are attached to the message with the results', async () => {
    const kit = await plotting(output);
    await say(kit, 'plot it');
    const shown = shownIn(kit.requests[1] as ModelRequest);
    expect(shown).toMatch(/\[image "chart\.png", image\/png, 400 bytes, artifact art_\d+_1\]/);
    expect(shown).not.toContain(BASE64.slice(0, 40));
    expect(shown).toContain('"title":"sales"');
    expect(await attachedOf(kit)).toEqual([['user', `chart.png: ${BYTES}`]]);
    const [id] = await artifactIds(kit);
    expect(shown).toContain(`artifact ${id}]`);
  });

  test('looks the same in the prompt of the next message, so that the prefix stays cached', async () => {
    const kit = await plotting(output);
    await say(kit, 'plot it');
    const [, before] = kit.requests;
    await say(kit, 'thanks');
    const after = kit.requests[2];
    expect(after?.messages[3]?.content.startsWith(resultsIn(before))).toBe(true);
    expect(await attachedOf(kit)).toEqual([['user', `chart.png: ${BYTES}`]]);
  });
});

function resultsIn(request: ModelRequest | undefined): string {
  const content = request?.messages.at(-1)?.content ?? '';
  return content.slice(0, content.indexOf('</results>') + 10);
}

test('[C2] a large image of an earlier turn is neither shown nor read again', async () => {
  const large = { name: 'large.png', content_type: 'image/png', base64: btoa('x'.repeat(300_000)) };
  const kit = await plotting({ title: 'sales', files: [large] });
  await say(kit, 'plot it');
  const before = resultsIn(kit.requests[1]);
  await say(kit, 'thanks');
  expect(kit.requests[2]?.messages[3]?.content.startsWith(before)).toBe(true);
  expect(before.length).toBeLessThan(1_000);
});

test('[C2] a result that contains an earlier one shows no base64 either, also in later turns', async () => {
  const remember =
    '<action type="internal" name="set_variable" mode="sync" id="v">{"key":"k","value":["$plot"]}</action>';
  const kit = await plotting({ files: [CHART] }, [`${CALL}${remember}`, DONE, DONE]);
  await say(kit, 'plot it');
  await say(kit, 'thanks');
  for (const request of kit.requests) expect(shownIn(request)).not.toContain(BASE64.slice(0, 40));
  expect(shownIn(kit.requests[1] as ModelRequest)).toContain('characters of base64, not shown');
});

test('[C2] an answer that was not completed shows its references as written, and no base64', async () => {
  const kit = await sessionKit({
    script: [
      `${CALL}<action type="tool" id="asks">{"name":"asks","parameters":{}}</action><response final="true">It is $plot.</response>`,
      DONE,
    ],
    tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'asks', approval: 'always' })],
    executors: { tool: async () => ({ ok: true, output: { files: [CHART] } }) },
  });
  await send(kit, 'plot it');
  await settle();
  await say(kit, 'thanks');
  const shown = shownIn(kit.requests[1] as ModelRequest);
  expect(shown).toContain('It is $plot.');
  expect(shown).not.toContain(BASE64.slice(0, 40));
});

test('[C2] a reference to the path of an image still gives its value', async () => {
  const inputs: unknown[] = [];
  const kit = await sessionKit({
    script: [
      CALL,
      '<action type="tool" id="use">{"name":"echo","parameters":{"data":"$plot.files[0].base64"}}</action>',
      DONE,
    ],
    executors: {
      tool: async ({ parameters }) => {
        inputs.push(parameters);
        return { ok: true, output: { files: [CHART] } };
      },
    },
  });
  await say(kit, 'plot it');
  expect(inputs[1]).toEqual({ data: BASE64 });
});

test('[C2] images of native calls are in a user message after the tool messages', async () => {
  const call: ModelDelta[] = [
    { type: 'tool_call', index: 0, id: 'call_1', name: 'echo', argumentsDelta: '{}' },
    { type: 'finish', reason: 'tool_calls' },
  ];
  const kit = await plotting({ files: [CHART] }, [call, DONE]);
  await say(kit, 'plot it');
  const { messages = [] } = kit.requests[1] ?? {};
  expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'user']);
  expect(messages[3]?.attachments).toBeUndefined();
  expect(messages[4]?.content).toMatch(/^<system>Files of these results: \[image "chart\.png"/);
  expect(await attachedOf(kit)).toEqual([['user', `chart.png: ${BYTES}`]]);
});

test('[C2] results whose context was cleared have no images', async () => {
  const clear = '<action type="internal" name="clear_context" mode="sync" id="c">{}</action>';
  const kit = await plotting({ files: [CHART] }, [CALL, clear, DONE]);
  await say(kit, 'plot it');
  expect(kit.requests).toHaveLength(3);
  expect(await attachedOf(kit)).toEqual([]);
});

test('[C2] more images than fit: the newest are attached, and the run has one warning', async () => {
  const files = Array.from({ length: limits.attachmentsPerRequest + 2 }, (_, index) => ({
    ...CHART,
    name: `${index}.png`,
  }));
  const kit = await plotting({ files }, [CALL, CALL.replace('plot', 'again'), DONE]);
  const { warnings } = await say(kit, 'plot it');
  expect(warnings).toEqual([
    { code: 'attachments_not_shown', message: expect.stringContaining('the image "20.png", the image "21.png"') },
  ]);
  expect(await attachedOf(kit)).toEqual([
    ['user', ...files.slice(0, limits.attachmentsPerRequest).map(({ name }) => `${name}: ${BYTES}`)],
  ]);
});

test('[C2] the prompt record has name, type and size of an attachment, never its bytes', async () => {
  const kit = await plotting({ files: [CHART] });
  const { run_id: runId } = await say(kit, 'plot it');
  const prompts = await textOf(kit.session.read().prompt(kit.session.run(runId)));
  expect(prompts).toContain('{"type":"image","name":"chart.png","media_type":"image/png","size":400}');
  expect(prompts).not.toContain(BASE64.slice(0, 40));
});

test('[C2] [X2] reading one of many files decodes no other', async () => {
  const files = Array.from({ length: limits.filesPerOutcome }, (_, at) => ({ ...CHART, name: `chart-${at}.png` }));
  const kit = await plotting({ files: ['not a file', ...files] });
  await say(kit, 'plot it');
  const [file] = kit.requests[1]?.messages.flatMap(({ attachments = [] }) => attachments) ?? [];
  const decoding = vi.spyOn(globalThis, 'atob');
  expect(new TextDecoder().decode(await file?.read())).toBe(BYTES);
  // Once for its length, once for its bytes.
  expect(decoding).toHaveBeenCalledTimes(2);
  decoding.mockRestore();
});

test('[C2] a stored result is read once for all of its images', async () => {
  const files = Array.from({ length: 20 }, (_, at) => ({ ...CHART, name: `${at}.png` }));
  const output = { files };
  const reads: number[] = [];
  const event = (seq: number): SessionEvent => {
    reads.push(seq);
    const data = { output, duration_ms: 1, attempts: 1 };
    return {
      seq,
      type: 'action_completed',
      session_id: 's',
      run_id: 'r',
      timestamp: 0,
      data,
    } as unknown as SessionEvent;
  };
  const shown = shownResult({ rawEvent: event, incarnation: null }, 7, output);
  for (const file of shown.files ?? []) expect(new TextDecoder().decode(await file.read())).toBe(BYTES);
  expect([shown.files?.length, reads]).toEqual([20, [7]]);
});
