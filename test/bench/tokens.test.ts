import { describe, expect, test } from 'vitest';
import { CALLS, TURNS } from '../../bench/tokens/calls.ts';
import { ENCODINGS, FORMS, median, native } from '../../bench/tokens/measure.ts';
import { bundled } from '../support/bundled.ts';
import { validateParameters } from '../../src/executors/validate-parameters.ts';
import { buildGrammar } from '../../src/protocol/grammar/grammar.ts';
import { createParser } from '../../src/protocol/parser/parser.ts';
import { renderAction } from '../../src/protocol/prompt/examples.ts';
import { engineFor } from '../support/xgrammar.ts';

const assistant = bundled.agent('assistant');
if (assistant === null) throw new Error('no assistant');

describe('the measured calls', () => {
  test('[P18] are fifty calls of all shipped tools, with valid parameters', () => {
    expect(CALLS).toHaveLength(50);
    expect(new Set(CALLS.map(({ name }) => name))).toEqual(new Set(assistant.tools.keys()));
    for (const { name = '', parameters } of CALLS) {
      const schema = assistant.tools.get(name)?.parameters ?? {};
      expect(validateParameters(schema, parameters), JSON.stringify(parameters)).toBeNull();
    }
  });

  test.each(['full', 'compact'] as const)(
    '[P18] parse without a warning and match the grammar in each turn, %s form',
    async (form) => {
      const engine = await engineFor(buildGrammar(assistant, { format: 'gbnf', form }).text);
      for (const { calls } of TURNS) {
        const text = calls.map((call) => renderAction(call, form)).join('\n');
        const parser = createParser({ json: 'strict', actInReasoning: false });
        const types = [...parser.feed(text), ...parser.end()].map(({ type }) => type);
        expect(types.filter((type) => type === 'action_declared')).toHaveLength(calls.length);
        expect(types.filter((type) => type === 'warning' || type === 'action_rejected')).toEqual([]);
        expect(engine.refusal(text), text).toBeNull();
      }
    },
  );
});

describe.each(Object.entries(ENCODINGS))('in tokens of %s', (_, count) => {
  const ratios = (write: (call: (typeof CALLS)[number]) => string): number =>
    median(CALLS.map((call) => count(write(call)) / count(native(call))));

  test('[P18] the compact form as taught costs at most 1.2 times the native one', () => {
    expect(
      ratios(FORMS['compact, as the prompt teaches: with the attributes that the call needs']),
    ).toBeLessThanOrEqual(1.2);
  });

  test('[P18] the compact form costs at most 1.2 times the native one if every call has an id and a mode', () => {
    expect(ratios(FORMS['compact, every call with id and mode'])).toBeLessThanOrEqual(1.2);
  });

  test('[P18] no call is longer in the compact form than in the full form', () => {
    for (const call of CALLS) {
      expect(count(renderAction(call, 'compact'))).toBeLessThan(count(renderAction(call, 'full')));
    }
  });
});
