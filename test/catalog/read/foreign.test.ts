/** Manifests of Cortex-MK1 and agent-lib-cpp are refused with the name of the command that converts them (M1). */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { FOREIGN, FOREIGN_FIELDS } from '../../../src/catalog/read/foreign.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { agent, head, load, relic, tool, workflow } from '../../support/manifests.ts';

describe('[M1] a manifest of the original', () => {
  test.each([
    ['a field of an agent', agent('a', 'iteration_cap: 3'), 'm.yaml:6:1: iteration_cap'],
    ['a field in a block', agent('a', 'import: {tools: [], env: [A=b]}'), 'm.yaml:6:21: import.env'],
    ['a prompt as a path', `${head('Agent', 'a')}persona: ./a.md\n`, 'm.yaml:5:10: persona'],
    ['another name of a provider', agent('a', 'cognitive_engine: {primary: {provider: google}}'), 'm.yaml:6:40'],
    ['a compiled tool', agent('a', 'import: {tools: [echo, builtin/exec]}'), 'm.yaml:6:24: import.tools[1]'],
    ['a field of a feed', agent('a', 'context_feeds: [{id: f, cache: {ttl: 3}}]'), 'context_feeds[0].cache'],
    ['an executor', `${head('Tool', 't')}executor: calculator\n`, 'm.yaml:5:1: executor'],
    ['a program at the top level', `${head('Tool', 't')}runtime: bash\nentrypoint: a.sh\n`, 'entrypoint'],
    ['a type', tool('t', 'implementation: {type: docker, image: a}'), 'm.yaml:5:24: implementation.type'],
    ['rules of a parameter', tool('t', 'parameters: [{name: n, validation: {min: 1}}]'), 'parameters[0].validation'],
    ['a Feed', 'kind: Feed\nname: f\nversion: "1"\nsummary: s\n', 'm.yaml:1:7: kind'],
    ['a service', relic('r', 'service_type: cache'), 'm.yaml:6:1: service_type'],
    ['a request body', relic('r', 'endpoints: {put: {path: /a, request_body: {}}}'), 'endpoints.put.request_body'],
    ['a step by id', workflow('w', 'steps: [{id: a, tool: echo}]'), 'm.yaml:5:10: steps[0].id'],
    ['a trigger', workflow('w', 'trigger: {type: scheduled, schedule: "0 1 * * *"}'), 'trigger.schedule'],
    ['a type of step', workflow('w', 'steps: [{name: a, type: emit}]'), 'steps[0].type'],
  ])('%s is the only problem of its document', (_what, text, place) => {
    const { problems, entries } = load({ 'm.yaml': text });
    expect(problems.map(formatProblem)).toEqual([expect.stringContaining(place)]);
    expect(problems.map(({ message }) => message)).toEqual([FOREIGN]);
    expect(entries).toEqual([]);
  });

  test.each([
    ['a note in a block', agent('a', 'import: {tools: [], metadata: {owner: me}}')],
    ['a path into a folder with that name', agent('a', 'import: {tools: [builtin/search.yaml]}')],
  ])('%s is no sign', (_what, text) => {
    const { problems } = load({ 'm.yaml': text, 'builtin/search.yaml': tool('search') });
    expect(problems).toEqual([]);
  });

  test('does not affect the other documents of its file', () => {
    const { problems, catalog } = load({ 'm.yaml': `${agent('a', 'grade: rare')}---\n${tool('t')}` });
    expect(problems).toHaveLength(1);
    expect(catalog.tool('t')?.name).toBe('t');
  });

  test('is named with the command', () => {
    expect(FOREIGN).toContain('`cortex migrate <folder> --out <new folder>`');
  });
});

describe('[M1] our own form has no sign of another system', () => {
  const places = Object.entries(FOREIGN_FIELDS).flatMap(([kind, fields]) =>
    Object.entries(fields).map(([place, names]) => [kind, place, names.split(' ')] as const),
  );

  test.each(places)('%s, at "%s"', (kind, place, names) => {
    const root = JSON.parse(readFileSync(`manifests/schemas/${kind}.json`, 'utf8')) as JsonObject;
    const own = fieldsAt(root, place);
    expect(names.filter((name) => own.has(name))).toEqual([]);
  });

  test('the places exist in our form, but for the parameters of tools', () => {
    const missing = places.filter(([kind, place]) => {
      const root = JSON.parse(readFileSync(`manifests/schemas/${kind}.json`, 'utf8')) as JsonObject;
      return fieldsAt(root, place).size === 0;
    });
    expect(missing.map(([kind, place]) => `${kind} ${place}`)).toEqual(['tool parameters.[]']);
  });

  test('shipped manifests load', () => {
    const texts = readdirSync('manifests', { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() && entry.name.endsWith('.yaml')
        ? [[`${entry.parentPath}/${entry.name}`, readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8')] as const]
        : [],
    );
    expect(texts.length).toBeGreaterThan(20);
    expect(load(Object.fromEntries(texts)).problems.filter(({ message }) => message === FOREIGN)).toEqual([]);
  });
});

/** The names of all fields that the JSON Schema allows at a place. */
function fieldsAt(root: JsonObject, place: string): ReadonlySet<string> {
  const all = (schema: Json | undefined): readonly JsonObject[] => {
    if (!isJsonObject(schema)) return [];
    const ref = schema['$ref'];
    if (typeof ref === 'string') {
      const target = ref.split('/').slice(1);
      return all(target.reduce<Json | undefined>((at, step) => (isJsonObject(at) ? at[step] : undefined), root));
    }
    const members = ['anyOf', 'oneOf', 'allOf'].flatMap((name) => schema[name] ?? []);
    return [schema, ...members.flatMap((member) => all(member))];
  };
  let at = all(root);
  for (const step of place === '' ? [] : place.split('.')) {
    at = at.flatMap((schema) => {
      if (step === '[]') return all(schema['items']);
      if (step === '*') return [...all(schema['items']), ...all(schema['additionalProperties'])];
      const { properties } = schema;
      return isJsonObject(properties) ? all(properties[step]) : [];
    });
  }
  return new Set(at.flatMap(({ properties }) => Object.keys(isJsonObject(properties) ? properties : {})));
}
