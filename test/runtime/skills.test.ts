/** Skills in workerd: uploaded as a folder, imported, loaded in a run, changed and removed (C8). */
import { describe, expect, test } from 'vitest';
import { call, execute } from './client.ts';

const LOAD =
  '<action type="internal" name="load_skill" id="s" mode="async">{"name":"forms"}</action><response final="true">$s.text</response>';
const SKILL = `---
name: forms
description: Fills forms. Use when a form is mentioned.
allowed-tools: Bash(rm:*)
---

Ask for the form first.
`;
const agent = (name: string, skills: string): string =>
  `kind: Agent\nversion: "1"\nname: ${name}\nsummary: s\npersona: You help.\ninternal_actions: {enabled: false}\nimport: {skills: [${skills}]}\n`;

async function upload(
  method: 'POST' | 'PUT',
  parts: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>,
): Promise<Response> {
  const form = new FormData();
  for (const [path, content] of Object.entries(parts)) form.append(path, new File([content], path));
  const packed = new Response(form);
  const body = await packed.arrayBuffer();
  const type = packed.headers.get('content-type') ?? '';
  const headers = { 'content-type': type, 'content-length': String(body.byteLength) };
  return await call('/manifests', { method, body, headers });
}

describe('[C8] a skill', () => {
  test('is uploaded with its files, loaded by a run that began with it, replaced and removed', async () => {
    const uploaded = await upload('POST', {
      'team/forms/SKILL.md': SKILL,
      'team/forms/scripts/fill.py': 'print(1)',
      'team/forms/assets/logo.png': Uint8Array.of(0x89, 0x50, 0xff),
      'team/clerk.yaml': agent('clerk', 'forms'),
    });
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

    const yaml = { headers: { accept: 'application/yaml' } };
    expect(await (await call('/manifests/skill/forms', yaml)).text()).toBe(SKILL);
    const graph = await (await call('/manifests/graph')).json<{ edges: unknown[] }>();
    expect(graph.edges).toContainEqual({ from: 'agent/clerk', to: 'skill/forms', how: 'import' });

    const better = SKILL.replace('first', 'twice');
    expect((await call('/manifests/skills/forms', { method: 'PUT', body: better })).status).toBe(200);
    expect(await execute(LOAD, { agent: 'clerk' })).toMatchObject({ response: 'Ask for the form twice.' });
    const found = await call('/manifests/skill/forms');
    expect(await found.json()).toMatchObject({
      revision: 2,
      definition: { text: 'Ask for the form twice.', files: [{ path: 'scripts/fill.py' }] },
    });

    const held = await call('/manifests/skill/forms', { method: 'DELETE' });
    expect(await held.json()).toMatchObject({ code: 'manifest_in_use' });
    expect((await call('/manifests/agent/clerk', { method: 'DELETE' })).status).toBe(204);
    expect((await call('/manifests/skill/forms', { method: 'DELETE' })).status).toBe(204);
    expect((await call('/manifests/skill/forms')).status).toBe(404);
  });

  test('with issues is reported with line and column, and stores nothing', async () => {
    const refused = await upload('POST', {
      'k/bad/SKILL.md': '---\nname: bad\n---\nx',
      'k/bad/x.yaml': agent('evil', ''),
    });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { code: 'invalid_manifest', problems: [{ file: 'k/bad/SKILL.md', line: 2, column: 1, field: 'description' }] },
    ]);
    expect((await call('/manifests/agent/evil')).status).toBe(404);
  });

  test('that is bundled cannot be changed', async () => {
    const body = SKILL.replace('forms', 'web-research');
    expect(await (await call('/manifests/skill/web-research', { method: 'PUT', body })).json()).toMatchObject({
      code: 'manifest_read_only',
    });
    expect(await (await call('/manifests/skills')).json()).toMatchObject({
      manifests: [{ name: 'data-analysis', common: true }, { name: 'report-writing' }, { name: 'web-research' }],
    });
  });
});

test('[C8] the researcher loads its skill although its other internal actions are disabled', async () => {
  const text = `${LOAD.replace('forms', 'web-research').replace('$s.text', '$s.name')}`;
  expect(await execute(text, { agent: 'researcher' })).toMatchObject({ status: 'completed', response: 'web-research' });
  const other = '<action type="internal" name="set_variable" id="v">{"key":"a","value":1}</action>';
  expect(await execute(other, { agent: 'researcher' })).toMatchObject({
    actions: [{ id: 'v', status: 'failed', error: { code: 'not_allowed' } }],
  });
});
