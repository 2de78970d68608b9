/**
 * Generates JSON Schemas for editors (`manifests/schemas/`) and the field reference in `docs/manifests.md` from the
 * manifest schemas. `--check` writes nothing and fails if a file is not up to date.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isJsonObject } from '../src/domain/json.ts';
import type { Json, JsonObject } from '../src/domain/json.ts';
import { agentSchema, monumentSchema, toolSchema } from '../src/catalog/schema/schema.ts';
import { relicSchema } from '../src/catalog/schema/schema-relic.ts';
import { workflowSchema } from '../src/catalog/schema/schema-workflow.ts';

const SCHEMAS = {
  Agent: agentSchema,
  Tool: toolSchema,
  Relic: relicSchema,
  Workflow: workflowSchema,
  Monument: monumentSchema,
} as const;
type Kind = keyof typeof SCHEMAS;
const KINDS = Object.keys(SCHEMAS) as Kind[];

const root = join(import.meta.dirname, '..');

/** The schema for editors: restricts `kind` to one kind, in both spellings. */
function jsonSchemaOf(kind: Kind): JsonObject {
  const schema = z.toJSONSchema(SCHEMAS[kind], {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // the fields of authors, which the loader accepts everywhere (K10)
      if (jsonSchema.additionalProperties === false) jsonSchema.patternProperties = { '^(metadata$|x-)': {} };
    },
  }) as JsonObject;
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  const described = isJsonObject(properties['kind']) ? properties['kind'] : {};
  return {
    ...schema,
    title: `${kind} manifest`,
    properties: { ...properties, kind: { ...described, type: 'string', enum: [kind, kind.toLowerCase()] } },
  };
}

/** Common fields have their own table. */
const COMMON = new Set(['kind', 'version', 'name', 'summary', 'description', 'author', 'state', 'tags', 'metadata']);

interface Row {
  readonly field: string;
  readonly type: string;
  readonly meaning: string;
}

/** Lists a schema's fields: nested ones after a dot, members of a list after `[]`. */
class Fields {
  readonly #root: JsonObject;
  readonly rows: Row[] = [];

  constructor(schema: JsonObject) {
    this.#root = schema;
  }

  object(schema: JsonObject, prefix: string, seen: readonly JsonObject[] = []): void {
    const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    for (const [name, written] of Object.entries(properties)) {
      if (!isJsonObject(written)) continue;
      const field = `${prefix}${name}`;
      const notes = [
        ...(typeof written['description'] === 'string' ? [written['description']] : []),
        ...(required.includes(name) && written['const'] === undefined ? ['**Required.**'] : []),
      ];
      this.rows.push({ field, type: this.#type(written, 0), meaning: notes.join(' ') });
      this.#inside(written, field, seen);
    }
  }

  #inside(written: JsonObject, field: string, seen: readonly JsonObject[]): void {
    const schema = this.#target(written);
    if (seen.includes(schema)) return;
    const further = [...seen, schema];
    const choices = [schema['anyOf'], schema['oneOf']]
      .flat()
      .filter((one): one is JsonObject => isJsonObject(one ?? null));
    for (const choice of choices) {
      const meant = this.#target(choice);
      const properties = isJsonObject(meant['properties']) ? meant['properties'] : {};
      const type = isJsonObject(properties['type']) ? properties['type']['const'] : undefined;
      if (typeof type !== 'string') {
        this.#inside(choice, field, further);
        continue;
      }
      const { type: _type, ...rest } = properties;
      this.rows.push({ field: `${field}.type`, type: `\`${type}\``, meaning: String(meant['description'] ?? '') });
      this.object({ ...meant, properties: rest }, `${field}.`, further);
    }
    if (isJsonObject(schema['items'])) this.#inside(schema['items'], `${field}[]`, further);
    else if (schema['properties'] !== undefined) this.object(schema, `${field}.`, further);
    const values = schema['additionalProperties'];
    if (isJsonObject(values) && this.#target(values)['properties'] !== undefined)
      this.#inside(values, `${field}.<name>`, further);
  }

  #type(written: JsonObject, depth: number): string {
    if (typeof written['$ref'] === 'string' && /__schema\d+$/.test(written['$ref'])) {
      const target = this.#target(written);
      // a reference to a schema without fields is any JSON value
      return target['properties'] === undefined ? 'anything' : 'map';
    }
    const schema = this.#target(written);
    if (schema['const'] !== undefined) return code(schema['const']);
    if (Array.isArray(schema['enum'])) return schema['enum'].map(code).join(', ');
    const choices = [schema['anyOf'] ?? schema['oneOf'] ?? []]
      .flat()
      .filter((one): one is JsonObject => isJsonObject(one));
    if (choices.length > 0) {
      const names = [...new Set(choices.map((choice) => this.#type(choice, depth + 1)))];
      return names.length > 4 ? 'anything' : names.join(' or ');
    }
    if (isJsonObject(schema['not'])) return 'nothing';
    const { type, items } = schema;
    if (type === 'array') return isJsonObject(items) && depth < 2 ? `list of ${this.#type(items, depth + 1)}` : 'list';
    if (type === 'object') return 'map';
    const words: Readonly<Record<string, string>> = {
      string: 'text',
      integer: 'whole number',
      boolean: 'true or false',
    };
    const name = Array.isArray(type)
      ? 'text'
      : (words[String(type)] ?? (type === undefined ? 'anything' : String(type)));
    return `${name}${this.#range(schema)}`;
  }

  #range({ minimum, maximum }: JsonObject): string {
    const least = typeof minimum === 'number' && minimum > Number.MIN_SAFE_INTEGER ? minimum : null;
    const most = typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER ? maximum : null;
    if (most !== null) return ` ${least ?? 0} to ${most}`;
    return least === null || least === 0 ? '' : `, at least ${least}`;
  }

  #target(schema: JsonObject): JsonObject {
    const reference = schema['$ref'];
    if (typeof reference !== 'string') return schema;
    if (reference === '#') return this.#root;
    const name = reference.split('/').at(-1) ?? '';
    const definitions = isJsonObject(this.#root['$defs']) ? this.#root['$defs'] : {};
    const found = definitions[name];
    return isJsonObject(found) ? found : {};
  }
}

function code(value: Json): string {
  return `\`${String(value)}\``;
}

function table(rows: readonly Row[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  return [
    '| field | type | meaning |',
    '|---|---|---|',
    ...rows.map(({ field, type, meaning }) => `| \`${field}\` | ${cell(type)} | ${cell(meaning)} |`),
  ].join('\n');
}

function rowsOf(kind: Kind): Row[] {
  const schema = jsonSchemaOf(kind);
  const fields = new Fields(schema);
  fields.object(schema, '');
  const seen = new Set<string>();
  const all = new Set(fields.rows.map(({ field }) => field));
  return fields.rows.filter(({ field, type }) => {
    // a field that accepts one or a list: listed once
    if (field.includes('[]') && (all.has(field.replace('[]', '')) || all.has(field.replace('[]', '.<name>'))))
      return false;
    const key = `${field} ${field.endsWith('.type') ? type : ''}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

const isCommon = ({ field }: Row): boolean => COMMON.has(field);

function page(): string {
  const kinds = KINDS.map((kind) => `\`${kind}\``).join(', ');
  const common = rowsOf('Agent')
    .filter(isCommon)
    .map((row) => (row.field === 'kind' ? { ...row, type: kinds } : row));
  const parts = [
    `### Common fields\n\n${table(common)}`,
    ...KINDS.filter((kind) => kind !== 'Monument').map(
      (kind) => `### ${kind}\n\n${table(rowsOf(kind).filter((row) => !isCommon(row)))}`,
    ),
  ];
  return parts.join('\n\n');
}

/** Replaces the tables between the two markers of the page. */
function withTables(text: string): string {
  const [begin, end] = ['<!-- fields: begin -->', '<!-- fields: end -->'];
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`docs/manifests.md has no ${begin} … ${end}`);
  return `${text.slice(0, from + begin.length)}\n\n${page()}\n\n${text.slice(to)}`;
}

const check = process.argv.includes('--check');
const docs = join(root, 'docs/manifests.md');
const folder = join(root, 'manifests/schemas');
const wanted = new Map<string, string>([
  ...KINDS.map((kind): [string, string] => [
    join(folder, `${kind.toLowerCase()}.json`),
    `${JSON.stringify(jsonSchemaOf(kind), null, 2)}\n`,
  ]),
  [docs, withTables(readFileSync(docs, 'utf8'))],
]);
let stale = 0;
for (const [file, text] of wanted) {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
  stale += 1;
  if (check) console.error(`${file.slice(root.length + 1)} is not up to date (run: npm run schemas)`);
  else {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, text);
    console.log(`${file.slice(root.length + 1)} written`);
  }
}
process.exitCode = check && stale > 0 ? 1 : 0;
