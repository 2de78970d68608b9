/**
 * The datasets of the shipped agents, run in process with scripted models (O3). A script uses what the prompt offers and
 * answers from results, so a manifest that loses a tool or a capability fails its dataset.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readDataset } from '../../cli/eval/dataset.ts';
import { readManifestFiles } from '../../cli/project/manifest-files.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { Project } from '../../src/durable/project.ts';
import { evaluateInProcess } from '../support/eval-in-process.ts';
import type { Outside } from '../support/eval-in-process.ts';

const MANIFESTS: ReadonlyMap<string, string> = new Map(
  readManifestFiles('manifests').map(({ path, text }) => [path.replace(/^manifests\//, ''), text]),
);
/** It judges: docs/evaluation.md says how to check a judge. */
const WITHOUT_DATASET: ReadonlySet<string> = new Set(['eval_judge']);
const AGENTS = [...MANIFESTS.keys()]
  .flatMap((path) => /^agents\/([a-z_]+)\.yaml$/.exec(path)?.[1] ?? [])
  .filter((name) => !WITHOUT_DATASET.has(name));

/** The shipped manifests. @param change to the text of one of them, by its path */
function projectWith(path = '', change: (text: string) => string = (text) => text): Project {
  const files = [...MANIFESTS].map(([at, text]) => ({ path: at, text: at === path ? change(text) : text }));
  const { catalog } = loadManifests(files);
  return { version: 'test', catalog: catalog.data, sources: {}, tools: {} };
}

/** A runner that knows the programs of the scripts, and a network with one page. */
const OUTSIDE: Outside = {
  actions: {
    python: ({ code }) => (code === 'print(2 ** 100)' ? String(2n ** 100n) : 'unknown program'),
    shell: ({ command }) => String(command).replace('echo ', ''),
    docker: ({ image, command }) =>
      image === 'busybox' ? String(command).replace('busybox echo ', '') : 'no such image',
    relic: (parameters, { name }) => {
      if (name === 'key_value.set') return { ...parameters, version: 1 };
      if (name === 'sql_store.execute')
        return { changes: String(parameters['sql']).startsWith('INSERT') ? 1 : 0, last_id: 1 };
      throw new Error(`the test has no relic endpoint ${name}`);
    },
  },
  fetch: (url) =>
    new URL(url).href === 'https://example.com/'
      ? new Response('Example Domain', { headers: { 'content-type': 'text/plain' } })
      : new Response('no such page', { status: 404 }),
};
const { relic: _relic, ...WITHOUT_RELICS } = OUTSIDE.actions ?? {};

/** Relics in containers are replaced; those at the edge are real. */
function outsideOf(agent: string): Outside {
  if (agent === 'archivist') return OUTSIDE;
  const tools: Outside['tools'] =
    agent === 'system_monitor'
      ? {
          system_status: () => ({
            processors: 4,
            load: [0.5, 0.4, 0.3],
            memory: { total_mb: 8_000, available_mb: 5_000 },
          }),
        }
      : {};
  return { ...OUTSIDE, actions: WITHOUT_RELICS, tools };
}

/** What each case of an agent's dataset complains about: no reason means that it passed. */
async function reasonsOf(agent: string, project: Project): Promise<Record<string, readonly string[]>> {
  const dataset = readDataset(readFileSync(`evals/${agent}.yaml`, 'utf8'));
  const script = readFileSync(`evals/scripts/${agent}.yaml`, 'utf8');
  const results = await evaluateInProcess(project, dataset, script, outsideOf(agent));
  return Object.fromEntries(results.map(({ name, reasons }) => [name, reasons]));
}

test('[O3] every shipped agent has a dataset and a script, which are for it', () => {
  const named = (folder: string): string[] =>
    readdirSync(folder).flatMap((file) => /^([a-z_]+)\.yaml$/.exec(file)?.[1] ?? []);
  expect(named('evals').toSorted()).toEqual(AGENTS.toSorted());
  expect(named('evals/scripts').toSorted()).toEqual(AGENTS.toSorted());
  for (const agent of AGENTS) expect(readDataset(readFileSync(`evals/${agent}.yaml`, 'utf8')).agent).toBe(agent);
});

test.each(AGENTS)('[O3] %s passes its dataset', async (agent) => {
  const reasons = await reasonsOf(agent, projectWith());
  expect(Object.keys(reasons).length).toBeGreaterThan(1);
  for (const [name, found] of Object.entries(reasons)) expect([name, found]).toEqual([name, []]);
});

describe('[O3] a broken agent fails its dataset', () => {
  const without = (part: string) => (text: string) => {
    if (!text.includes(part)) throw new Error(`the manifest does not contain ${part}`);
    return text.replace(part, '');
  };
  const instead = (part: string, other: string) => (text: string) => {
    if (!text.includes(part)) throw new Error(`the manifest does not contain ${part}`);
    return text.replace(part, other);
  };

  test.each<[agent: string, what: string, path: string, change: (text: string) => string, failing: readonly string[]]>([
    [
      'assistant',
      'without the calculator',
      'agents/assistant.yaml',
      without('calculator, '),
      [
        'calculates',
        'starts independent actions at once',
        'says that an action failed',
        'uses the earlier conversation',
      ],
    ],
    ['assistant', 'without Python', 'agents/assistant.yaml', without('python, '), ['runs Python']],
    [
      'assistant',
      'with a tool that is another one',
      'tools/json_query.yaml',
      instead('entrypoint: json_query', 'entrypoint: echo'),
      ['queries JSON'],
    ],
    [
      'careful_assistant',
      'that does not ask before it runs code',
      'agents/careful_assistant.yaml',
      instead('mode: supervised', 'mode: autonomous'),
      ['runs no Python without an approval'],
    ],
    [
      'analyst',
      'without its workflow',
      'agents/analyst.yaml',
      without('workflows: [data_pipeline]'),
      ['passes orders to the workflow'],
    ],
    [
      'analyst',
      'with a workflow that multiplies wrongly',
      'workflows/data_pipeline.yaml',
      instead('$(item.price) * $(item.quantity)', '$(item.price) + $(item.quantity)'),
      ['passes orders to the workflow'],
    ],
    ['builder', 'without Docker', 'agents/builder.yaml', without(', docker'), ['runs a command in an image']],
    [
      'notes_keeper',
      'without its log',
      'agents/notes_keeper.yaml',
      without(', event_log'),
      ['stores a note and logs the change'],
    ],
    [
      'notes_keeper',
      'without the feed of notes',
      'agents/notes_keeper.yaml',
      (text) => text.replace(/context_feeds:\n(?: .*\n)+/, ''),
      ['answers from the feed of notes'],
    ],
    [
      'notes_keeper',
      'with a table that is read-only',
      'relics/tables.yaml',
      (text) => `${text}endpoints: [query]\n`,
      ['counts in a table, with values as params'],
    ],
    [
      'research_orchestrator',
      'with a researcher without a calculator',
      'agents/researcher.yaml',
      without('calculator, '),
      ['hands parts to researchers and combines them'],
    ],
    [
      'researcher',
      'without web_fetch',
      'agents/researcher.yaml',
      without('web_fetch, '),
      ['reads a page and names its source'],
    ],
    [
      'system_monitor',
      'without its log',
      'agents/system_monitor.yaml',
      without('relics: [event_log]'),
      ['writes to the log'],
    ],
    [
      'archivist',
      'without its store',
      'agents/archivist.yaml',
      instead('[key_value, sql_store]', '[sql_store]'),
      ['stores a fact'],
    ],
  ])('%s %s', async (agent, _, path, change, failing) => {
    const reasons = await reasonsOf(agent, projectWith(path, change));
    const failed = Object.entries(reasons).flatMap(([name, found]) => (found.length > 0 ? [name] : []));
    expect(failed).toEqual(failing);
  });
});
