/** The catalogue in workerd: changes at run time, uploads, and runs that keep their pinned definitions (M4, C8). */
import { abortAllDurableObjects } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/view/result.ts';
import { here } from './bindings.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { childEventsOf } from '../support/events.ts';
import { call, events, execute, newSession, post } from './client.ts';

const yaml = (kind: string, name: string, rest: string, version = '1.0'): string =>
  `kind: ${kind}\nversion: ${version}\nname: ${name}\nsummary: Something\n${rest}\n`;
const agent = (name: string, tools: string, version?: string): string =>
  yaml('Agent', name, `persona: You help.\nimport: {tools: [${tools}]}`, version);
const echo = (name: string, version?: string): string =>
  yaml(
    'Tool',
    name,
    'implementation: {type: builtin, entrypoint: echo}\neffects: pure\nparameters: {type: object}',
    version,
  );

const put = (path: string, body: string): Promise<Response> => call(`/manifests/${path}`, { method: 'PUT', body });
const remove = (path: string): Promise<Response> => call(`/manifests/${path}`, { method: 'DELETE' });
const get = async (path: string): Promise<Record<string, unknown>> => await (await call(`/manifests/${path}`)).json();

/** The body and headers of a form with these files. */
async function formOf(parts: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>): Promise<RequestInit> {
  const form = new FormData();
  for (const [path, content] of Object.entries(parts)) form.append(path, new File([content], path));
  const packed = new Response(form);
  const body = await packed.arrayBuffer();
  const type = packed.headers.get('content-type') ?? '';
  return { body, headers: { 'content-type': type, 'content-length': String(body.byteLength) } };
}

describe('[M4] the catalogue', () => {
  test('accepts a tool and an agent, which run at once, and lists them with the bundled ones', async () => {
    expect((await put('tool/parrot', echo('parrot'))).status).toBe(201);
    expect((await put('agents/keeper', agent('keeper', 'parrot'))).status).toBe(201);
    const result = await execute(
      '<action name="parrot" id="a">{"word":"hi"}</action><response final="true">$a.word</response>',
      { agent: 'keeper' },
    );
    expect(result).toMatchObject({ status: 'completed', response: 'hi' });
    const { manifests } = (await get('agent')) as { manifests: { name: string; common: boolean }[] };
    expect(manifests.find(({ name }) => name === 'keeper')).toMatchObject({
      version: '1.0',
      revision: 1,
      common: false,
    });
    expect(manifests.find(({ name }) => name === 'assistant')).toMatchObject({ revision: null, common: true });
    const { agents } = await (await call('/agents')).json<{ agents: { name: string }[] }>();
    expect(agents.map(({ name }) => name)).toContain('keeper');
    expect(await newSession('keeper')).toMatch(/^ses_/);
  });

  test('[L4] [X1] results of tools are in no prompt of another session', async () => {
    await put('tool/census', echo('census'));
    await put('agent/clerk', agent('clerk', 'census'));
    const prompt = async (): Promise<string> => await (await call('/agents/clerk/prompt')).text();
    const before = await prompt();
    const run = await execute('<action name="census" id="a">{"john_doe":{"age":7}}</action>', { agent: 'clerk' });
    expect(run.actions).toMatchObject([{ status: 'completed', output: { john_doe: { age: 7 } } }]);
    expect(await prompt()).toBe(before);
    await remove('agent/clerk');
    await remove('tool/census');
  });

  test('[X2] [X3] warns about hosts and secrets that this deployment does not have', async () => {
    const desk = yaml(
      'Tool',
      'desk',
      'implementation: {type: http, url: "http://localhost:4000/tickets/{id}", headers: {authorization: "${TOOL_DESK}"}}\nparameters: {id: string}',
    );
    const expected = [
      { field: 'implementation.url', message: expect.stringContaining('ALLOW_HOSTS') },
      { field: 'implementation.headers.authorization', message: expect.stringContaining('TOOL_DESK is not set') },
    ];
    const one = await put('tool/desk', desk);
    expect([one.status, await one.json()]).toMatchObject([201, { name: 'desk', warnings: expected }]);
    const checked = await post('/manifests/validate', { files: { 'tools/desk.yaml': desk } });
    expect(await checked.json()).toMatchObject({ problems: [], warnings: expected });
  });

  test('reports errors by line and field, and stays unchanged', async () => {
    const response = await put('tool/bad', yaml('Tool', 'bad', 'implementation: {type: builtin, entrypoint: ech}'));
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { code: 'invalid_manifest', problems: [{ file: 'tools/bad.yaml', line: 5, field: 'implementation.entrypoint' }] },
    ]);
    expect((await call('/manifests/tool/bad')).status).toBe(404);
    expect(await (await put('tool/echo', echo('echo'))).json()).toMatchObject({
      code: 'manifest_read_only',
      status: 409,
    });
  });

  test('[M1] refuses a manifest of the original, and names the command that converts it', async () => {
    const old = yaml('Agent', 'elder', 'persona: You help.\niteration_cap: 3');
    const named = expect.stringContaining('cortex migrate') as string;
    for (const response of [
      await call('/manifests', { method: 'POST', body: old }),
      await put('agent/elder', old),
      await post('/manifests', { files: { 'agents/elder.yml': old } }),
    ]) {
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { code: 'invalid_manifest', detail: named, problems: [{ line: 6, field: 'iteration_cap', message: named }] },
      ]);
    }
    expect((await call('/manifests/agent/elder')).status).toBe(404);
  });

  test('accepts a folder with its scripts; files that do not load are reported, and the rest is stored', async () => {
    const folder = await formOf({
      'team/agents/lead.yaml': agent('lead', '../tools/sum.yaml'),
      'team/tools/sum.yaml': yaml('Tool', 'sum', 'implementation: {type: script, entrypoint: ./sum.py}'),
      'team/tools/sum.py': 'print(1)',
      'team/broken.yaml': 'kind: Agnt\n',
    });
    const checked = await call('/manifests/validate', { method: 'POST', ...folder });
    expect(await checked.json()).toMatchObject({ valid: false, manifests: [{ name: 'lead' }, { name: 'sum' }] });
    expect((await call('/manifests/agent/lead')).status).toBe(404);

    const response = await call('/manifests', { method: 'POST', ...folder });
    expect(response.status).toBe(207);
    expect(await response.json()).toMatchObject({
      manifests: [
        { kind: 'agent', name: 'lead', revision: 1 },
        { kind: 'tool', name: 'sum', revision: 1 },
      ],
      problems: [{ file: 'team/broken.yaml', line: 1, column: 7, field: 'kind' }],
    });
    expect(await get('tool/sum')).toMatchObject({ definition: { implementation: { source: 'print(1)' } } });
  });

  test('[M6] schedules a workflow when it is stored, and unschedules it when it is removed', async () => {
    const due = async (): Promise<unknown> => await here.SCHEDULES.getByName('local').upcoming();
    const steps = 'steps: [{name: s, type: tool, target: calculator, parameters: {expression: 1+1}}]';
    await put('workflow/tick', yaml('Workflow', 'tick', `trigger: {type: scheduled, cron: "0 3 * * *"}\n${steps}`));
    expect(await due()).toMatchObject([{ workflow: 'tick', cron: '0 3 * * *', timezone: 'UTC' }]);
    const run = await post('/workflows/tick/runs', { stream: false });
    expect(await run.json()).toMatchObject({ status: 'completed' });
    await remove('workflow/tick');
    expect(await due()).toEqual([]);
  });

  test('[J2] keeps the pinned definitions of a run after a change and a crash', async () => {
    await put('tool/slow', echo('slow'));
    await put('agent/steady', agent('steady', 'slow'));
    const text =
      '<action name="slow" id="a" mode="async">{"delay_ms":400}</action>' +
      '<action name="slow" id="b" mode="async" depends_on="a">{"word":"still here"}</action><response final="true">$b.word</response>';
    const response = await post('/execute/direct', { protocol_text: text, agent: 'steady' });
    const session = response.headers.get('x-session-id') ?? '';
    await events(response, ({ type }) => type === 'action_started');
    // the agent loses the tool during the run
    expect((await put('agent/steady', agent('steady', 'calculator', '2.0'))).status).toBe(200);
    await remove('tool/slow');
    await abortAllDurableObjects();
    const rest = await events(await call(`/agent/session/${session}/events`), ({ type }) => type.startsWith('agent_c'));
    expect(rest.at(-1)).toMatchObject({ type: 'agent_completed' });
    const { runs } = await (await call(`/agent/session/${session}/runs`)).json<{ runs: { run_id: string }[] }>();
    const result = await (await call(`/agent/session/${session}/runs/${runs[0]?.run_id ?? ''}`)).json<RunResult>();
    expect(result).toMatchObject({ status: 'completed', response: 'still here' });
    // the next run uses the new version
    const later = await execute('<action name="slow" id="a">{}</action>', { agent: 'steady' });
    expect(later.actions).toMatchObject([{ status: 'rejected', error: { code: 'unknown_name' } }]);
  });

  test('[M2] agents with sub-agents of the same name call their own one, also after an eviction', async () => {
    const files: Record<string, string> = {};
    for (const side of ['north', 'south']) {
      const leads = 'persona: You lead.\nimport: {agents: [./agents/scout/agent.yaml]}';
      files[`${side}/agent.yaml`] = yaml('Agent', side, leads);
      files[`${side}/agents/scout/agent.yaml`] = yaml('Agent', 'scout', `persona: You scout the ${side}.`);
    }
    const uploaded = await call('/manifests', { method: 'POST', body: JSON.stringify({ files }) });
    expect([uploaded.status, await uploaded.json()]).toMatchObject([201, { problems: [] }]);
    const text =
      '<action name="scout" type="agent" id="s" mode="async">{"message":"hello"}</action><response final="true">$s</response>';
    for (const side of ['north', 'south']) {
      const response = await post('/execute/direct', { protocol_text: text, agent: side });
      const session = response.headers.get('x-session-id') ?? '';
      const all = await events(response, ({ type }) => type === 'action_started');
      await abortAllDurableObjects();
      const isEnd = ({ type }: SessionEvent): boolean => type.startsWith('agent_c');
      all.push(...(await events(await call(`/agent/session/${session}/events`), isEnd)));
      expect(all.at(-1)).toMatchObject({ type: 'agent_completed' });
      const child = all.filter(({ action_id: id }) => id === 's').flatMap(childEventsOf)[0]?.session_id ?? '';
      const { runs } = await (await call(`/agent/session/${child}/runs`)).json<{ runs: { run_id: string }[] }>();
      const prompt = await call(`/agent/session/${child}/runs/${runs[0]?.run_id ?? ''}/prompt`);
      expect(await prompt.text()).toContain(`You scout the ${side}.`);
    }
    await call('/manifests', { method: 'PUT', body: JSON.stringify({ files: {} }) });
  });
});

const LOAD =
  '<action type="internal" name="load_skill" id="s" mode="async">{"name":"forms"}</action><response final="true">$s.text</response>';
const SKILL = `---
name: forms
description: Fills forms. Use when a form is mentioned.
allowed-tools: Bash(rm:*)
---

Ask for the form first.
`;
describe('[C8] a skill', () => {
  test('is uploaded with its files, loaded by a run that began with it, replaced and removed', async () => {
    const folder = await formOf({
      'team/forms/SKILL.md': SKILL,
      'team/forms/scripts/fill.py': 'print(1)',
      'team/forms/assets/logo.png': Uint8Array.of(0x89, 0x50, 0xff),
      'team/clerk.yaml': yaml('Agent', 'clerk', 'persona: You help.\nimport: {skills: [forms]}'),
    });
    const uploaded = await call('/manifests', { method: 'POST', ...folder });
    expect([uploaded.status, await uploaded.json()]).toMatchObject([
      201,
      {
        manifests: [
          { kind: 'agent', name: 'clerk' },
          { kind: 'skill', name: 'forms', revision: 1, summary: 'Fills forms. Use when a form is mentioned.' },
        ],
        warnings: [{ file: 'team/forms/assets/logo.png', message: 'is not UTF-8 text and was ignored' }],
      },
    ]);

    const result = await execute(LOAD, { agent: 'clerk' });
    expect(result).toMatchObject({ status: 'completed', response: 'Ask for the form first.' });
    const prompt = await (await call('/agents/clerk/prompt')).text();
    expect(prompt).toContain('forms: Fills forms. Use when a form is mentioned.');

    const asYaml = { headers: { accept: 'application/yaml' } };
    expect(await (await call('/manifests/skill/forms', asYaml)).text()).toBe(SKILL);
    expect((await get('graph'))['edges']).toContainEqual({ from: 'agent/clerk', to: 'skill/forms', how: 'import' });

    const better = SKILL.replace('first', 'twice');
    expect((await put('skills/forms', better)).status).toBe(200);
    expect(await execute(LOAD, { agent: 'clerk' })).toMatchObject({ response: 'Ask for the form twice.' });
    expect(await get('skill/forms?revision=1')).toMatchObject({ revision: 1, source: SKILL });
    expect(await get('skill/forms?revision=3')).toMatchObject({ code: 'unknown_manifest', status: 404 });
    expect(await get('skill/forms')).toMatchObject({
      revision: 2,
      definition: { text: 'Ask for the form twice.', files: [{ path: 'scripts/fill.py' }] },
    });

    expect(await (await remove('skill/forms')).json()).toMatchObject({ code: 'manifest_in_use' });
    expect((await remove('agent/clerk')).status).toBe(204);
    expect((await remove('skill/forms')).status).toBe(204);
    expect((await call('/manifests/skill/forms')).status).toBe(404);
  });
});
