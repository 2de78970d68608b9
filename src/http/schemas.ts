/**
 * Schemas of every request body; the OpenAPI document is generated from them (H4). Unknown members are rejected,
 * because they would otherwise be ignored silently.
 */
import * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import { json } from '../domain/event-table.ts';
import { limits } from '../domain/limits.ts';
import { nearestNames } from '../domain/nearest.ts';
import { contentParts } from './content-parts.ts';
import { historyBody } from './history-body.ts';
import { choiceNames, memberNames, valueAt } from './member-names.ts';
import { SCOPES } from './operations.ts';
import { SURFACES } from './tokens.ts';
import { USER_ID, USER_ID_RULE } from '../domain/user-id.ts';

const name = z.string().min(1).max(128);
const userId = z.string().regex(USER_ID, `must be ${USER_ID_RULE}`);
const stream = z.boolean().default(true).meta({
  description: 'Events (SSE), or with `false` one JSON document after the run has ended',
});
const freeObject = z.record(z.string().max(256), json);
const metadata = freeObject.refine(
  (value) => JSON.stringify(value).length <= limits.metadataBytes,
  `at most ${limits.metadataBytes} bytes of JSON`,
);
/** Session variables: names that `$name` can use (P12), within the session's limits. */
const variables = z
  .record(
    z.string().regex(/^[^<>&"'\s\p{Cc}]{1,64}$/u, 'a name has 1 to 64 characters, none of < > & " \' or white space'),
    json,
  )
  .refine((values) => Object.keys(values).length <= limits.variables, `at most ${limits.variables} variables`)
  .refine(
    (values) => Object.values(values).every((value) => JSON.stringify(value).length <= limits.variableBytes),
    `a variable may have at most ${limits.variableBytes} bytes of JSON`,
  );

export const createSessionBody = z.strictObject({
  user_id: userId.nullish().meta({ description: 'The user of the session; chosen by the client' }),
  agent_name: name.nullish().meta({ description: 'The agent again; must be the one in the URL' }),
  initial_state: variables.optional().meta({ description: 'Session variables, readable as $name' }),
  metadata: metadata.optional().meta({ description: 'Stored with the session, not shown to the model' }),
  history: historyBody.optional(),
});

const message = z.string().regex(/\S/, 'a message must not be empty');

const content = z.union([message, contentParts], {
  error: 'expected a message that is not empty: text, or a list of parts',
});
const llmTokens = z.boolean().default(false).meta({ description: 'Also send the raw model text as llm_token events' });

export const messageBody = z
  .strictObject({
    content: content.optional().meta({
      description: `The user's message: text, up to ${limits.messageBytes} bytes, or parts with images and files, up to ${limits.messagePartBytes} bytes each and ${limits.messageFileBytes} together. Required, unless \`message\` is given`,
    }),
    message: message.optional().meta({ description: 'Another name of `content`' }),
    tools: z
      .array(
        z.strictObject({
          name: z.string().meta({
            description:
              'Up to 64 letters, digits, `_` and `-`, a letter first; it must mean nothing else to the agent',
          }),
          description: z.string().max(4_096).default('').meta({ description: 'What the tool does, for the model' }),
          parameters: freeObject
            .default({ type: 'object', properties: {} })
            .meta({ description: 'JSON Schema of the parameters object' }),
        }),
      )
      .optional()
      .meta({
        description: `Client tools of this message, up to ${limits.clientTools} and ${limits.clientToolBytes} bytes; the agent must allow them, and a token needs the scope \`tools\``,
      }),
    instructions: z
      .string()
      .min(1)
      .max(limits.instructionChars)
      .optional()
      .meta({ description: 'Instructions of the application for this message; require an API key' }),
    metadata: metadata.optional().meta({
      description: 'Stored with the message and returned by `…/history`, not shown to the model',
    }),
    parent_run: z.string().max(128).nullable().optional().meta({
      description:
        'The run that the message follows; null begins the conversation again. Default: the head. For another run, a token needs the scope `branch`',
    }),
    stream,
    llm_tokens: llmTokens,
  })
  .refine(({ content, message: other }) => (content === undefined) !== (other === undefined), {
    path: ['content'],
    error: 'expected a string: the message, either as "content" or as "message"',
  });

export const retryBody = z
  .strictObject({
    content: content
      .optional()
      .meta({ description: 'A changed message, as in `…/message`. Default: the same message' }),
    action: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .meta({ description: 'Id of an action of the run: only this action runs again, without the model' }),
    stream,
    llm_tokens: llmTokens,
  })
  .refine(
    ({ content: changed, action }) => changed === undefined || action === undefined,
    'give either "content" or "action"',
  );

export const forkBody = z.strictObject({
  at_run: z.string().max(128).optional().meta({ description: 'The last run of the new session. Default: the head' }),
});

export const headBody = z.strictObject({
  run_id: z.string().max(128).meta({ description: 'The run that the next message follows' }),
});

const OWN_SESSION = 'every execution is a separate session; POST /agent/session/{id}/message continues a session';

export const executeBody = z.strictObject({
  protocol_text: z
    .string()
    .regex(/\S/, 'the text must not be empty')
    .meta({ description: 'Protocol text to run as if a model had written it' }),
  context: variables.nullish().meta({ description: 'Session variables, readable as $name' }),
  session_id: z
    .string()
    .max(128)
    .regex(/^(?!ses_[0-9a-f]{32}$)/, OWN_SESSION)
    .nullish()
    .meta({
      description:
        "The client's own id of the session; stored in its `metadata`. The execution has a session of its own, whose id the system assigns",
    }),
  agent: name.default('assistant').meta({ description: 'The agent whose tools and permissions apply' }),
  stream,
});

export const workflowBody = z.strictObject({
  inputs: variables
    .default({})
    .meta({ description: 'Inputs declared by the workflow; its steps read them as $(trigger.name)' }),
  stream,
});

export const eventBody = z.strictObject({
  data: variables.default({}).meta({ description: 'Inputs of the workflows that the event starts' }),
});

/** A folder of manifests, by path (M4). */
export const manifestFilesBody = z.strictObject({
  files: z
    .record(z.string().max(255), z.string().max(limits.manifestBytes))
    .meta({ description: 'File contents by path' }),
});

export const planBody = z.strictObject({
  protocol_text: z.string().min(1).meta({ description: 'Protocol text to plan' }),
  agent: name.optional().meta({ description: 'If set, names are looked up and unknown ones cause warnings' }),
});

/** `{"decision": "approve"}`, or `{"approve": true}`, or `{"deny": true}`; with `content`, if it answers a question. */
export const approvalBody = z
  .strictObject({
    decision: z.enum(['approve', 'deny']).optional().meta({ description: 'The decision' }),
    approve: z.boolean().optional().meta({ description: 'Instead of `decision`: true approves, false denies' }),
    deny: z.boolean().optional().meta({ description: 'Instead of `decision`: true denies, false approves' }),
    note: z
      .string()
      .max(limits.approvalNoteChars)
      .optional()
      .meta({ description: 'Shown to the model and stored with the decision' }),
    content: freeObject.optional().meta({
      description: 'The values that a question asks for, when it is approved. Default: the defaults of its schema',
    }),
  })
  .refine(
    ({ decision, approve, deny }) => [decision, approve, deny].filter((choice) => choice !== undefined).length === 1,
    'give exactly one of decision, approve, deny',
  );

/** `{output}`, or `{error: {message}}`. */
export const callBody = z
  .strictObject({
    output: json.optional().meta({ description: 'The result' }),
    error: z
      .strictObject({ message: z.string().min(1).max(8_192).meta({ description: 'Why it failed, for the model' }) })
      .optional()
      .meta({ description: 'Instead of `output`: the tool has failed' }),
  })
  .refine(({ output, error }) => (output === undefined) !== (error === undefined), 'give exactly one of output, error');

const tokenMembers = {
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .max(SCOPES.length)
    .default(['read', 'message'])
    .meta({ description: 'Permissions of the token' }),
  expires_in: z
    .int()
    .min(1)
    .max(limits.sessionTokenMaxSeconds)
    .default(limits.sessionTokenSeconds)
    .meta({ description: 'Lifetime in seconds' }),
};

export const tokenBody = z.strictObject(tokenMembers);

export const userTokenBody = z.strictObject({
  user_id: userId.meta({ description: 'The user whose sessions the token is for' }),
  agents: z
    .array(name)
    .min(1)
    .max(limits.tokenAgents)
    .optional()
    .meta({ description: 'Names of the agents that it may use. Default: all agents of the namespace' }),
  surfaces: z
    .array(z.enum(SURFACES))
    .min(1)
    .max(SURFACES.length)
    .default([...SURFACES])
    .meta({ description: 'The protocols that it may use' }),
  ...tokenMembers,
});

export const factBody = z.strictObject({
  value: z
    .string()
    .min(1)
    .max(limits.factValueChars * 4)
    .meta({
      description: `The fact: at most ${limits.factValueChars} characters; white space and line breaks become one space`,
    }),
});

export const cancelBody = z.strictObject({
  reason: z.string().max(500).default('cancelled by request').meta({ description: 'Stored with the cancelled run' }),
});

/** Members that are commonly misplaced, with a hint. */
const MISPLACED = new Map<z.ZodType, Readonly<Record<string, string>>>([
  [messageBody, { session_id: 'the session id is part of the URL' }],
  [createSessionBody, { session_id: 'the system assigns session ids; use `metadata` for your own id' }],
]);

/** Maximum number of names listed in a message. */
const NAMES_SHOWN = 20;

/**
 * Checks a parsed body.
 *
 * @throws EngineError `invalid_request` with `issues: [{path, message}]`; an unknown member with the nearest known name
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // A mistyped member also makes another one missing, so unknown members are reported first.
  const found = parsed.error.issues.flatMap((issue) => chosen(issue, value));
  const unknownFirst = found.toSorted((a, b) => Number(isUnknown(b)) - Number(isUnknown(a)));
  const described = unknownFirst.slice(0, NAMES_SHOWN).flatMap((issue) => {
    const path = issue.path.map(String).join('.');
    if (issue.code === 'unrecognized_keys') {
      const names = memberNames(schema, value, issue.path);
      const misplaced = path === '' ? MISPLACED.get(schema) : {};
      const within = path === '' ? '' : `${path}.`;
      return issue.keys.slice(0, NAMES_SHOWN).map((key) => unknownMember(key, names, misplaced, within));
    }
    if (issue.code === 'invalid_union' && issue.discriminator !== undefined) {
      return [{ path, message: unknownChoice(schema, value, issue.path, issue.discriminator) }];
    }
    const predicate = predicateOf(issue, valueAt(value, issue.path));
    if (predicate !== null) return [{ path, message: predicate, isPredicate: true }];
    // The issue of a key is nested one level deeper.
    const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [{ path, message }];
  });
  const [first = { path: '', message: 'not valid' }] = described;
  const where = first.path === '' ? 'The body' : `"${first.path}"`;
  const text = 'isPredicate' in first ? `${where} ${first.message}` : `${where}: ${first.message}`;
  const issues = described.map(({ path, message }) => ({ path, message }));
  throw new EngineError('invalid_request', text, { issues });
}

/** For a member that is missing, or that has none of the allowed values: what is said about it; null for other issues. */
function predicateOf(issue: z.core.$ZodIssue, given: unknown): string | null {
  if (issue.code !== 'invalid_type' && issue.code !== 'invalid_value') return null;
  if (given === undefined && issue.path.length > 0) return 'is missing';
  if (issue.code !== 'invalid_value') return null;
  const allowed = issue.values.map((value) => JSON.stringify(value)).join(', ');
  const text = JSON.stringify(given) ?? 'undefined';
  const excerpt = text.length > limits.excerptChars ? `${text.slice(0, limits.excerptChars)}…` : text;
  const [near] = typeof given === 'string' ? nearestNames(given, issue.values.map(String)) : [];
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  return `must be ${issue.values.length === 1 ? '' : 'one of '}${allowed} (not ${excerpt}${hint})`;
}

/** The issues of a list where a text or a list is expected: the list was meant. */
function chosen(issue: z.core.$ZodIssue, value: unknown): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union' || issue.discriminator !== undefined) return [issue];
  const { path, errors } = issue;
  if (!Array.isArray(valueAt(value, path))) return [issue];
  const meant = errors.filter((issues) => !issues.some((one) => one.code === 'invalid_type' && one.path.length === 0));
  const [only, ...others] = meant;
  if (only === undefined || others.length > 0) return [issue];
  return only.flatMap((one) => chosen({ ...one, path: [...path, ...one.path] }, value));
}

function isUnknown({ code }: z.core.$ZodIssue): boolean {
  return code === 'unrecognized_keys';
}

/** For a value that selects no member of a union, such as an unknown role. @param path of the selecting member */
function unknownChoice(schema: z.ZodType, value: unknown, path: readonly PropertyKey[], name: string): string {
  const known = choiceNames(schema, value, path.slice(0, -1));
  const given = valueAt(value, path);
  const listed = `known: ${known.join(', ')}`;
  if (typeof given !== 'string') return `expected one of ${known.map((each) => `"${each}"`).join(', ')}`;
  const [near] = nearestNames(given, known);
  const hint = near === undefined ? listed : `did you mean "${near}"? ${listed}`;
  return `unknown ${name} "${given.slice(0, limits.excerptChars)}" (${hint})`;
}

function unknownMember(
  key: string,
  known: readonly string[],
  misplaced: Readonly<Record<string, string>> = {},
  within = '',
): { path: string; message: string } {
  const path = within + key.slice(0, limits.excerptChars);
  const meant = Object.keys(misplaced).find((name) => nearestNames(key, [name]).length > 0);
  const [near] = nearestNames(key, known);
  const listed = known.length === 0 ? 'none are known here' : `known: ${known.join(', ')}`;
  const hint =
    meant !== undefined && (near === undefined || meant === key)
      ? misplaced[meant]
      : near === undefined
        ? listed
        : `did you mean "${near}"?`;
  return { path, message: `unknown member (${hint})` };
}
