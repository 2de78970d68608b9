/** Names in an action's call (P12, P14) and in a response (P13). */
import { describe, expect, test } from 'vitest';
import { plainDeclaration } from '../../../src/domain/action.ts';
import type { ActionDeclaration, ActionType } from '../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { Reference } from '../../../src/domain/protocol-event.ts';
import { renderReference, resolveCall } from '../../../src/engine/run/resolve-names.ts';
import type { RenderedReference } from '../../../src/engine/run/resolve-names.ts';
import type { ResolvedCall } from '../../../src/engine/run/resolve-names.ts';
import type { NameValue } from '../../../src/engine/run/results.ts';
import { newSubstitutionQuota } from '../../../src/protocol/references/substitution.ts';

const VALUES: Readonly<Record<string, NameValue>> = {
  n: { type: 'value', value: 3 },
  who: { type: 'value', value: { name: 'Ann' } },
  busy: { type: 'running' },
  broken: { type: 'absent', why: 'failed' },
};

const action = (type: ActionType, parameters: JsonObject, more: Partial<ActionDeclaration> = {}): ActionDeclaration =>
  plainDeclaration({ id: 'a', type, mode: 'async', name: 'echo', parameters, ...more });

function resolve(
  given: ActionDeclaration,
  dependencies: readonly (readonly [ActionDeclaration, Json])[] = [],
): ResolvedCall {
  return resolveCall(given, {
    lookup: (name) => VALUES[name] ?? { type: 'unknown' },
    dependencies: () => dependencies.map(([dependency, output]) => ({ action: dependency, output })),
    quota: newSubstitutionQuota(),
  });
}

describe('[P12] the parameters of an action', () => {
  test('get the values of names; a name without a value is reported', () => {
    const parameters = {
      n: '$n',
      text: 'for $who.name',
      busy: '$busy',
      broken: '$broken',
      other: 'see $broken',
      $: '$x',
    };
    expect(resolve(action('tool', parameters))).toMatchObject({
      parameters: { n: 3, text: 'for Ann', busy: null, broken: null, other: 'see [broken: failed]', $: '$x' },
      inputs: {},
      spent: false,
      warnings: [{ code: 'unknown_reference' }],
    });
  });

  test('report the number of rendered characters', () => {
    expect(resolve(action('tool', { plain: 'x' })).renderedChars).toBe(0);
    expect(resolve(action('tool', { text: 'for $who.name' })).renderedChars).toBeGreaterThan(0);
  });
});

describe('[P14] the inputs of code', () => {
  const dependency = (id: string, outputKey: string | null): ActionDeclaration => action('tool', {}, { id, outputKey });

  test('code is unchanged; each dependency is an input under its id and its output key', () => {
    const code = action('python', { code: 'print("$n")', inputs: { sum: '$n', note: 'for $who.name' } });
    const resolved = resolve(code, [
      [dependency('first', 'key'), { x: 1 }],
      [dependency('second', null), null],
    ]);
    expect(resolved).toMatchObject({ parameters: code.parameters, warnings: [] });
    expect(resolved.inputs).toEqual({ first: { x: 1 }, key: { x: 1 }, second: null, sum: 3, note: 'for Ann' });
    expect(resolved).not.toHaveProperty('value');
  });

  test('an explicit input replaces a dependency with the same name', () => {
    const code = action('python', { code: '1', inputs: { first: '$n' } });
    expect(resolve(code, [[dependency('first', null), 'output']]).inputs).toEqual({ first: 3 });
  });

  test('references in a list are named after their targets; other items are omitted', () => {
    const inputs = ['$n', '${who.name}', '$who[0]', 'plain', 7, null];
    const code = action('python', { code: '1', inputs });
    expect(resolve(code).inputs).toEqual({ n: 3, who: null, plain: 'plain' });
  });

  test.each([[null], ['$n'], [7]])('the inputs %j count as none', (inputs) => {
    expect(resolve(action('python', { code: '1', inputs })).inputs).toEqual({});
  });

  test('a command gets the names in it as inputs if they have a value; the command is unchanged', () => {
    const command = action('shell', { command: 'echo $n ${who} $busy $broken $unknown', inputs: { more: '$n' } });
    const { inputs, parameters } = resolve(command);
    expect(inputs).toStrictEqual({ n: 3, who: { name: 'Ann' }, more: 3 });
    expect(parameters).toBe(command.parameters);
  });

  test('`__proto__` is an ordinary name', () => {
    const inputs = JSON.parse('{"__proto__": "$n"}') as JsonObject;
    const resolved = resolve(action('python', { code: '1', inputs }));
    expect(JSON.stringify(resolved.inputs)).toBe('{"__proto__":3}');
  });
});

describe('[P13] a reference in a response', () => {
  const reference = (name: string, path: Reference['path'] = []): Reference =>
    ({ name, path, raw: `$${name}${path.map((step) => `.${step}`).join('')}` }) as unknown as Reference;

  const missing = (message: string) => ({ code: 'missing_path', message }) as const;
  const cases: readonly (readonly [Reference, NameValue, text: string, RenderedReference['warning']])[] = [
    [reference('n'), { type: 'value', value: 3 }, '3', null],
    [reference('who', ['name']), { type: 'value', value: { name: 'Ann' } }, 'Ann', null],
    [
      reference('who', ['age']),
      { type: 'value', value: { name: 'Ann' } },
      '[who.age: missing]',
      missing('$who.age: this path does not exist in the value of "who"'),
    ],
    [
      reference('who', ['age']),
      { type: 'value', value: { age: null } },
      '[who.age: missing]',
      missing('$who.age: this value is null'),
    ],
    [reference('n'), { type: 'value', value: null }, '[n: missing]', missing('$n: this value is null')],
    [reference('n'), { type: 'value', value: ' ' }, '[n: empty]', missing('$n: this value is empty text')],
    [reference('n'), { type: 'value', value: { a: [] } }, '{"a":[]}', null],
    [reference('a'), { type: 'absent', why: 'skipped' }, '[a: skipped]', null],
    [reference('a'), { type: 'absent', why: 'left_out' }, '[a: left_out]', null],
    [reference('a'), { type: 'running' }, '[a: pending]', null],
    [
      reference('a', ['b']),
      { type: 'unknown' },
      '$a.b',
      { code: 'unknown_reference', message: '$a.b refers to a name that was not declared before; left unchanged' },
    ],
  ];
  test.each(cases)('%j with the value %j is %j', (given, value, text, warning) => {
    expect(renderReference(given, value)).toMatchObject({ text, warning });
  });
});
