/** The workflows in the docs load without a warning, run, and give the outputs that the docs promise (M6). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readManifestFiles } from '../../../cli/project/manifest-files.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { checkInputs } from '../../../src/engine/workflow/workflow-inputs.ts';
import { resultOf, sessionKit } from '../../support/session-kit.ts';

const pages = ['manifests', 'workflows'].map((name) => readFileSync(`docs/${name}.md`, 'utf8')).join('\n');
const examples = [...pages.matchAll(/^kind: Workflow\n[\s\S]*?\n(?=```|END$)/gm)].map(([text], index) => ({
  path: `manifests/docs-${index}.yaml`,
  text,
}));
const { catalog, problems, warnings } = loadManifests([...readManifestFiles('manifests'), ...examples]);

/** What the text after the example says, as JSON. */
function promised(name: string, text: RegExp): readonly [string, JsonObject, JsonObject] {
  const [, inputs = '', outputs = ''] = text.exec(pages) ?? [];
  return [name, JSON.parse(inputs) as JsonObject, JSON.parse(outputs) as JsonObject];
}

describe('[M6] the examples of workflows in the docs', () => {
  test('load without a warning, and each is run below', () => {
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
    expect(examples.map(({ text }) => /^name: (.*)$/m.exec(text)?.[1])).toEqual(['greet_all', 'greet']);
  });

  test.each([
    promised('greet_all', /With the inputs `(\{.*?\})`, the\s+outputs\s+of `greet_all` are\s+`(\{.*?\})`/),
    promised('data_pipeline', /"inputs": (\{.*\})\n[\s\S]*?workflow's outputs as JSON values:\s+`(\{.*?\})`/),
    promised('greet', /BODY='(\{.*\})'[\s\S]*?the\s+outputs\s+`(\{.*?\})`/),
  ])('%s gives the outputs that the docs show', async (name, inputs, outputs) => {
    const workflow = catalog.workflow(name);
    if (workflow === null) throw new Error(`there is no workflow ${name}`);
    checkInputs(workflow.workflow, inputs);
    const { session } = await sessionKit({ workflow });
    const { run, runId } = await session.workflow(inputs);
    await session.ended(run);
    const result = await resultOf(session, session.run(runId));
    expect(result).toMatchObject({ status: 'completed', warnings: [], failed_actions: 0 });
    expect(result.outputs).toEqual(outputs);
  });
});
