/** Writes the reference of routes in docs/http.md from the OpenAPI document: npm run docs */
import { createApp } from '../src/http/app.ts';
import type { AppOptions } from '../src/http/app.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly schema: Schema;
}

interface Operation {
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly headers?: Readonly<Record<string, unknown>>;
        readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
      }
    >
  >;
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** The OpenAPI document of this code. */
export async function apiDocument(): Promise<ApiDocument> {
  // The document needs the routes only: no handler but that of the document is called.
  const options = { version: '', auth: { keys: [], allowedOrigins: [] } } as unknown as AppOptions;
  const response = await createApp(options).fetch(new Request('http://localhost/openapi.json'));
  return (await response.json()) as ApiDocument;
}

/** The sections of the page, with the paths of each; the first that fits counts. */
const SECTIONS: readonly (readonly [title: string, pattern: RegExp])[] = [
  ['Sessions', /^\/(tokens|agent\/(?!.*\/approvals))/],
  ['Approvals', /\/approvals/],
  ['Programs', /^\/(execute|plan|executions)/],
  ['Workflows', /^\/(workflows|schedules|events|webhooks)/],
  ['Manifests', /^\/manifests/],
  ['System', /^\//],
];

/** Components that have a section at the end of the page; the document of a run is in docs/runs.md. */
const DOCUMENTS = ['Session', 'Approval', 'OpenApproval', 'Artifact', 'WorkspaceFile', 'Manifest', 'Problem'] as const;

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
  rows.length === 0
    ? []
    : [
        `| ${head.join(' | ')} |`,
        `|${head.map(() => '---').join('|')}|`,
        ...rows.map((row) => `| ${row.map(cell).join(' | ')} |`.replaceAll('|  |', '| |')),
        '',
      ];

function typeText({ $ref, type, enum: values, const: only, items, anyOf, oneOf }: Schema): string {
  if ($ref !== undefined) return linkTo($ref);
  if (only !== undefined) return `\`${String(only)}\``;
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(', ');
  const choices = anyOf ?? oneOf;
  if (choices !== undefined) return [...new Set(choices.map(typeText))].join(' or ');
  if (type === 'array') return items === undefined ? 'list' : `list of ${typeText(items)}`;
  return typeof type === 'string' ? type : (type?.join(' or ') ?? 'any');
}

function linkTo(ref: string): string {
  const name = ref.split('/').at(-1) ?? '';
  if (name === 'RunResult') return '[run](runs.md#the-document)';
  return (DOCUMENTS as readonly string[]).includes(name) ? `[${name}](#${name.toLowerCase()})` : name;
}

function defaultText({ default: value }: Schema): string {
  if (value === undefined || (typeof value === 'object' && value !== null)) return '';
  return `. Default \`${String(value)}\``;
}

/** The members of an object, with those of its own objects. */
function memberRows(where: string, schema: Schema, path = ''): string[][] {
  const own = Object.assign({}, schema.properties, ...(schema.allOf ?? []).map((part) => part.properties)) as object;
  return Object.entries(own as NonNullable<Schema['properties']>).flatMap(([name, member]) => {
    const isRequired = schema.required?.includes(name) === true;
    const meaning = `${member.description ?? ''}${defaultText(member)}${where === 'body' && isRequired ? '. Required' : ''}`;
    const row = [...(where === '' ? [] : [where]), `\`${path}${name}\``, typeText(member), meaning];
    const [inner, suffix] = member.type === 'array' ? [member.items ?? {}, '[].'] : [member, '.'];
    return [row, ...memberRows(where, inner, `${path}${name}${suffix}`)];
  });
}

/** Who may call an operation. */
function access({ security }: Operation): string {
  const roleOrScopes = (scheme: string): string[] => security.flatMap((one) => one[scheme] ?? []);
  const has = (scheme: string): boolean => security.some((one) => Object.hasOwn(one, scheme));
  if (has('signature')) return 'a signature';
  if (!has('apiKey')) return 'none';
  const role = roleOrScopes('apiKey')
    .map((name) => ` (role \`${name}\`)`)
    .join('');
  const scopes = roleOrScopes('userToken')
    .map((scope) => `\`${scope}\``)
    .join(' or ');
  const kind = has('sessionToken') ? 'a token' : 'a user token';
  return `API key${role}${scopes === '' ? '' : `, or ${kind} with the scope ${scopes}`}`;
}

/** What a successful response contains. */
function responseText({ responses }: Operation): string {
  const codes = Object.keys(responses).filter((code) => code !== 'default');
  const content = Object.values(responses).find((one) => one.content !== undefined && one !== responses['default']);
  const kinds = Object.entries(content?.content ?? {}).map(([type, { schema }]) => {
    if (type !== 'application/json') return `\`${type}\``;
    const base = schema.$ref ?? schema.allOf?.find(({ $ref }) => $ref !== undefined)?.$ref;
    if (base === undefined) return `\`${type}\``;
    return `\`${type}\` (${linkTo(base)}${schema.allOf === undefined ? '' : ' with these members'})`;
  });
  return `Status ${codes.join(' or ')}${kinds.length === 0 ? '' : `: ${kinds.join(', ')}`}.`;
}

function operationText(method: string, path: string, operation: Operation): string[] {
  const { summary, parameters, requestBody, responses } = operation;
  const given = parameters.filter((one) => one.in !== 'path');
  const bodies = requestBody?.content ?? {};
  const json = bodies['application/json']?.schema;
  const others = Object.keys(bodies).filter((type) => type !== 'application/json');
  const success = Object.entries(responses).find(([code]) => code !== 'default')?.[1];
  const headers = Object.keys(success?.headers ?? {});
  const answer = success?.content?.['application/json']?.schema ?? {};
  return [
    `### \`${method.toUpperCase()} ${path}\``,
    '',
    `${summary}. Access: ${access(operation)}.`,
    '',
    ...table(
      ['in', 'name', 'type', 'meaning'],
      [
        ...given.map((one) => [one.in, `\`${one.name}\``, typeText(one.schema), one.description ?? '']),
        ...(json === undefined ? [] : memberRows('body', json)),
        ...(answer.$ref === undefined ? memberRows('response', answer) : []),
      ],
    ),
    `${responseText(operation)}${headers.length === 0 ? '' : ` Headers: ${headers.map((name) => `\`${name}\``).join(', ')}.`}${
      others.length === 0
        ? ''
        : ` The body ${json === undefined ? 'is' : 'may also be'} ${others.map((type) => `\`${type}\``).join(', ')}.`
    }`,
    '',
  ];
}

/** The generated part of the page. */
export function httpReference({ paths, components }: ApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = SECTIONS.flatMap(([title], at) => {
    const own = operations.filter(({ path }) => SECTIONS.findIndex(([, pattern]) => pattern.test(path)) === at);
    return [`## ${title}`, '', ...own.flatMap(({ method, path, operation }) => operationText(method, path, operation))];
  });
  const documents = DOCUMENTS.flatMap((name) => {
    const schema = components.schemas[name] ?? {};
    return [`### ${name}`, '', ...table(['member', 'type', 'meaning'], memberRows('', schema))];
  });
  return [...sections, '## Documents', '', ...documents].join('\n');
}

/** The page with its reference as it should be. */
export async function withHttpReference(page: string): Promise<string> {
  const reference = httpReference(await apiDocument());
  return page.replace(
    /(<!-- routes -->\n)[^]*?(<!-- end -->)/,
    (_whole, before: string, after: string) => `${before}\n${reference}\n${after}`,
  );
}
