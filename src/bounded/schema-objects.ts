/** Keywords of JSON Schema about objects and their members. */
import type { Json, JsonObject } from '../domain/json.ts';
import { below, mapAt } from './schema-run.ts';
import type { Applied, SchemaRun, Step } from './schema-run.ts';

export function checkObject(run: SchemaRun, applied: Applied, value: JsonObject): boolean {
  const names = Object.keys(value);
  run.meter.charge(names.length);
  let valid = nameRules(run, applied, value, names);
  valid = dependencies(run, applied, value) && valid;
  return members(run, applied, value, names) && valid;
}

function nameRules(run: SchemaRun, applied: Applied, value: JsonObject, names: readonly string[]): boolean {
  const { schema, place } = applied;
  const { minProperties, maxProperties, propertyNames } = schema;
  let valid = true;
  for (const name of run.list(schema, 'required')) {
    if (typeof name === 'string' && !Object.hasOwn(value, name)) {
      valid = run.fail(applied, 'required', `Instance does not have required property "${name}".`);
    }
  }
  if (typeof minProperties === 'number' && names.length < minProperties) {
    valid = run.fail(applied, 'minProperties', `Instance does not have at least ${minProperties} properties.`);
  }
  if (typeof maxProperties === 'number' && names.length > maxProperties) {
    valid = run.fail(applied, 'maxProperties', `Instance has more than ${maxProperties} properties.`);
  }
  if (propertyNames === undefined) return valid;
  for (const name of names) {
    const start = run.errors.length;
    if (!run.apply(propertyNames, name, below(place, ['propertyNames'], [name]), run.fresh(applied))) {
      valid = run.fail(applied, 'propertyNames', `Property name "${name}" does not match schema.`, start);
    }
  }
  return valid;
}

function dependencies(run: SchemaRun, applied: Applied, value: JsonObject): boolean {
  let valid = true;
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
    const members = mapAt(applied.schema, keyword);
    if (members === null) continue;
    for (const name of run.names(members)) {
      if (!Object.hasOwn(value, name)) continue;
      const needed = members[name] ?? null;
      if (!Array.isArray(needed)) {
        const start = run.errors.length;
        if (!run.same(applied, needed, [keyword, name])) {
          valid = run.fail(applied, keyword, `Instance has "${name}" but does not match dependent schema.`, start);
        }
        continue;
      }
      run.meter.charge(needed.length);
      for (const other of needed) {
        if (typeof other === 'string' && !Object.hasOwn(value, other)) {
          valid = run.fail(applied, keyword, `Instance has "${name}" but does not have "${other}".`);
        }
      }
    }
  }
  return valid;
}

function members(run: SchemaRun, applied: Applied, value: JsonObject, names: readonly string[]): boolean {
  const { schema, seen } = applied;
  const known = new Set<string>();
  let valid = true;
  const member = (name: string, own: Json, keywords: readonly Step[], error: string): void => {
    known.add(name);
    seen?.names.add(name);
    const start = run.errors.length;
    const place = below(applied.place, keywords, [name]);
    if (run.apply(own, value[name] ?? null, place, run.fresh(applied))) return;
    valid = run.fail(applied, String(keywords[0]), error, start);
  };
  const properties = mapAt(schema, 'properties');
  for (const name of run.names(properties)) {
    if (Object.hasOwn(value, name)) {
      member(name, properties?.[name] ?? null, ['properties', name], `Property "${name}" does not match schema.`);
    }
  }
  const patterns = mapAt(schema, 'patternProperties');
  for (const source of run.names(patterns)) {
    const own = patterns?.[source] ?? null;
    const pattern = run.schema.pattern(source);
    for (const name of names) {
      if (!pattern.test(name, run.meter)) continue;
      const error = `Property "${name}" matches pattern "${source}" but does not match associated schema.`;
      member(name, own, ['patternProperties', source], error);
    }
  }
  const { additionalProperties, unevaluatedProperties } = schema;
  if (additionalProperties !== undefined) {
    for (const name of names) {
      if (known.has(name)) continue;
      const error = `Property "${name}" does not match additional properties schema.`;
      member(name, additionalProperties, ['additionalProperties'], error);
    }
  } else if (unevaluatedProperties !== undefined) {
    for (const name of names) {
      if (seen?.names.has(name) === true) continue;
      const error = `Property "${name}" does not match unevaluated properties schema.`;
      member(name, unevaluatedProperties, ['unevaluatedProperties'], error);
    }
  }
  return valid;
}
