/** Finds the part of a schema that an issue is about, for the names that its message lists. */
import * as z from 'zod';

/** The members of the object at a path of the value; empty if the schema names none. */
export function memberNames(schema: z.ZodType, value: unknown, path: readonly PropertyKey[]): string[] {
  const found = schemaAt(schema, value, path);
  return found instanceof z.ZodObject ? Object.keys(found.shape) : [];
}

/** The values of the discriminator of the union at a path. */
export function choiceNames(schema: z.ZodType, value: unknown, path: readonly PropertyKey[]): string[] {
  const union = within(schemaAt(schema, value, path), undefined);
  if (!(union instanceof z.ZodDiscriminatedUnion)) return [];
  const { discriminator, options } = union.def;
  return options.flatMap((option) => valuesOf(option as z.ZodType, discriminator));
}

/** The value at a path; undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[step];
  }
  return found;
}

function schemaAt(schema: z.ZodType, value: unknown, path: readonly PropertyKey[]): z.ZodType | null {
  let found: z.ZodType | null = within(schema, value);
  for (const [at, step] of path.entries()) {
    if (found instanceof z.ZodArray) found = found.element as z.ZodType;
    else if (found instanceof z.ZodObject) found = (found.shape as Record<PropertyKey, z.ZodType>)[step] ?? null;
    else return null;
    found = within(found, valueAt(value, path.slice(0, at + 1)));
  }
  return found;
}

/** The schema of this value, behind wrappers and the choice of a union. */
function within(schema: z.ZodType | null, value: unknown): z.ZodType | null {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return within(schema.def.innerType as z.ZodType, value);
  }
  if (!(schema instanceof z.ZodDiscriminatedUnion)) {
    if (!(schema instanceof z.ZodUnion) || !Array.isArray(value)) return schema;
    // A text or a list.
    const list = (schema.options as readonly z.ZodType[]).find((option) => option instanceof z.ZodArray);
    return list ?? schema;
  }
  const { discriminator, options } = schema.def;
  const chosen = valueAt(value, [discriminator]);
  const option = options.find((each) => valuesOf(each as z.ZodType, discriminator).includes(String(chosen)));
  return option === undefined ? schema : (option as z.ZodType);
}

function valuesOf(option: z.ZodType, discriminator: string): string[] {
  const member = option instanceof z.ZodObject ? (option.shape as Record<string, z.ZodType>)[discriminator] : undefined;
  return member instanceof z.ZodLiteral ? [...member.values].map(String) : [];
}
