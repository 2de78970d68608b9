/** The definition of code tools, and their types (K2). */
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineTool, parsedIssue, schemaOf, ToolError } from '../../src/code-tools/define-tool.ts';
import type { ToolContext } from '../../src/code-tools/define-tool.ts';

const parameters = z.object({
  city: z.string().describe('A city.'),
  days: z.number().int().min(1).default(3),
  unit: z.enum(['C', 'F']).optional(),
});

describe('[K2] defineTool', () => {
  test('infers the input of run and of the example from the schema', () => {
    const tool = defineTool({
      name: 'weather',
      description: 'The weather.',
      parameters,
      example: { city: 'Rome' },
      run(input, ctx) {
        expectTypeOf(input).toEqualTypeOf<{ city: string; days: number; unit?: 'C' | 'F' | undefined }>();
        expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
        expectTypeOf(ctx.env['DB']).toBeUnknown();
        return input.days;
      },
    });
    expectTypeOf(tool.parameters).toEqualTypeOf<typeof parameters>();
    expect(tool.effects).toBe('unsafe');

    // @ts-expect-error -- the example must be an input of the schema
    defineTool({ name: 'x', description: 'x', parameters, example: { town: 'Rome' }, run: () => null });
    // @ts-expect-error -- effects are a closed set
    expect(() => defineTool({ name: 'x', description: 'x', parameters, effects: 'safe', run: () => null })).toThrow(
      '"effects" must be one of pure, idempotent, unsafe',
    );
  });

  test('gives the JSON Schema of what the model writes: defaults are optional', () => {
    expect(schemaOf({ parameters })).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string', description: 'A city.' },
        days: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 },
        unit: { type: 'string', enum: ['C', 'F'] },
      },
      required: ['city'],
    });
  });

  test.each<[what: string, parameters: z.ZodType, issue: string | null]>([
    ['JSON', parameters, null],
    ['a text that is made of a text', z.object({ a: z.string().transform((text) => text.trim()) }), null],
    ['an optional member', z.object({ a: z.string().optional(), b: z.record(z.string(), z.unknown()) }), null],
    [
      'a date',
      z.object({ a: z.object({ at: z.iso.date().pipe(z.coerce.date()) }) }),
      'parameters.a.at: the schema gives a date',
    ],
    ['a bigint', z.object({ n: z.string().pipe(z.coerce.bigint()) }), 'parameters.n: the schema gives a bigint'],
    [
      'a set',
      z.object({
        s: z
          .array(z.string())
          .transform((list) => new Set(list))
          .pipe(z.set(z.string())),
      }),
      'parameters.s: the schema gives a set',
    ],
  ])('says why a schema that gives %s cannot be judged', (_what, given, issue) => {
    schemaOf({ parameters: given });
    expect(parsedIssue({ parameters: given })).toEqual(issue === null ? null : expect.stringContaining(issue));
  });

  test.each([
    [{ name: '' }, '"name" must be a text'],
    [{ description: 7 }, '"description" must be a text'],
    [{ parameters: { type: 'object' } }, '"parameters" must be a zod object'],
    [{ run: null }, '"run" must be a function'],
    [{ timeout: 5 }, 'unknown member "timeout" (known: name, description'],
  ])('refuses %j', (wrong, message) => {
    const options = { name: 'x', description: 'x', parameters, run: () => null, ...wrong };
    expect(() => defineTool(options as never)).toThrow(message);
  });

  test('a ToolError has a code and says whether a retry may help', () => {
    expect(new ToolError('no')).toMatchObject({ code: 'tool_failed', retryable: false, message: 'no' });
    const cause = new Error('inner');
    expect(new ToolError('busy', { code: 'busy', retryable: true, cause })).toMatchObject({
      code: 'busy',
      retryable: true,
      cause,
    });
  });
});
