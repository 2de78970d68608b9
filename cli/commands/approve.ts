import type { Client, JsonObject, OpenApproval } from '../../src/client/index.ts';
import { isJsonObject } from '../../src/domain/json.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall, ExitCode } from '../command.ts';
import { isSet, textOption } from '../option-values.ts';
import { clientOf } from '../terminal/client.ts';
import { isSessionId } from '../terminal/session-id.ts';
import { askedBy, boxed, visible } from '../terminal/visible.ts';
import { again } from '../terminal/waiting.ts';

/** Pages of open requests that are searched and listed, 100 requests each. */
const MOST_PAGES = 100;

export const command: Command = {
  name: 'approve',
  summary: 'Lists what waits for an approval, and approves or denies it.',
  usage: '[<approval | session>] [--deny] [--note <text>] [--content <json>]',
  help: `  <approval>       the id of a request; the id of a session decides its only open request
  --deny           denies the action instead
  --note <text>    is stored with the decision; the model reads that of a denial
  --content <json> an object with the values that a question asks for
                   (default: the defaults of its schema)

Without an id, the command lists all open requests with their parameters and decides nothing.`,
  example: 'cortex approve apr_0123456789abcdef0123456789abcdef --deny --note "not in production"',
  options: { deny: { type: 'boolean' }, note: { type: 'string' }, content: { type: 'string' } },
  isRemote: true,
  positionals: [0, 1],
  run: async (call) => {
    const client = clientOf(call);
    const [id] = call.positionals;
    if (id !== undefined) return await decide(client, id, call);
    if (isSet(call, 'deny') || textOption(call, 'note') !== undefined || textOption(call, 'content') !== undefined) {
      throw new UsageError('--deny, --note and --content need the id of an approval or of a session');
    }
    return await list(client, call);
  },
};

async function list(client: Client, call: CommandCall): Promise<ExitCode> {
  const approvals = await allOpen(client);
  if (call.json) call.print(JSON.stringify({ approvals }));
  else if (approvals.length === 0) call.print('nothing waits for an approval');
  else for (const approval of approvals) print(approval, call);
  return EXIT.ok;
}

async function decide(client: Client, id: string, call: CommandCall): Promise<ExitCode> {
  const content = contentOf(call);
  const approval = isSessionId(id) ? await onlyOne(client, id, call) : await find(client, id);
  const approve = !isSet(call, 'deny');
  const note = textOption(call, 'note');
  await client.session(approval.session_id).decide(approval.approval_id, {
    approve,
    ...(note === undefined ? {} : { note }),
    ...(content === undefined ? {} : { content }),
  });
  const { approval_id, session_id, run_id, action_id } = approval;
  const decision = approve ? 'approved' : 'denied';
  call.print(
    call.json
      ? JSON.stringify({ approval_id, session_id, run_id, action_id, decision, note: note ?? null })
      : `${decision}: ${visible(labelOf(approval))} in ${session_id}`,
  );
  return EXIT.ok;
}

/** @throws UsageError unless it is a JSON object */
function contentOf(call: CommandCall): JsonObject | undefined {
  const text = textOption(call, 'content');
  if (text === undefined) return undefined;
  let content: unknown = null;
  try {
    content = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (isJsonObject(content)) return content;
  throw new UsageError(`--content must be a JSON object, such as '{"seats": 2}'`);
}

/** @throws UsageError unless the session and its sub-agents have exactly one open request */
async function onlyOne(client: Client, session: string, call: CommandCall): Promise<OpenApproval> {
  const [first, ...others] = await client.session(session).approvals();
  if (first === undefined) throw new Error(`nothing in ${session} waits for an approval`);
  if (others.length === 0) return first;
  for (const approval of [first, ...others]) if (!call.json) print(approval, call);
  throw new UsageError(`${others.length + 1} requests of ${session} wait; name the id of one`);
}

/** @throws Error if no open request has the id */
async function find(client: Client, id: string): Promise<OpenApproval> {
  const open = await allOpen(client);
  const found = open.find(({ approval_id: one }) => one === id);
  if (found !== undefined) return found;
  throw new Error(
    `no open request has the id "${visible(id.slice(0, 100))}": it was decided, has expired, or never was`,
  );
}

async function allOpen(client: Client): Promise<readonly OpenApproval[]> {
  const all: OpenApproval[] = [];
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { approvals, next } = await client.approvals({ after });
    all.push(...approvals);
    if (next === null) break;
    after = next;
  }
  return all;
}

function print(approval: OpenApproval, call: CommandCall): void {
  const { approval_id: id, agent, session_id: session, expires_at: expires, complete, parameters, inputs } = approval;
  call.print(`${id}  ${visible(labelOf(approval))}, agent ${visible(agent)}, ${session}`);
  call.print(`    until ${new Date(expires).toISOString()}`);
  const columns = process.stdout.columns || 80;
  if (approval.question != null) call.print(askedBy(approval.question, columns));
  if (!complete) call.print(`    too long to list; read it before you decide: ${again(call, 'chat', session)}`);
  else call.print(boxed(parameters, columns));
  if (complete && Object.keys(inputs ?? {}).length > 0) call.print(`  inputs\n${boxed(inputs, columns)}`);
}

function labelOf({ action_id: id, name, type }: OpenApproval): string {
  return `${id} (${name === null || name === type ? type : `${type} ${name}`})`;
}
