/** Questions about approvals (J8). */
import pc from 'picocolors';
import { messageOf } from '../../src/domain/errors.ts';
import type { EventOf } from '../../src/domain/event.ts';
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { OpenApproval } from '../../src/engine/actions/approval-list.ts';
import { askedBy, visible } from '../terminal/visible.ts';
import { shown } from './question.ts';
import type { Api, Ask, Question } from './question.ts';

/** Longer calls are not printed to the terminal. */
const PRINTED_BYTES = 65_536;

/** What is shown of a request for approval. `parameters` is absent or null if the call is long. */
interface Requested {
  readonly path: string;
  readonly label: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly reason?: string | null | undefined;
  readonly parameters?: JsonObject | null;
  readonly inputs?: JsonObject | null;
  /** What the target of the action asks. */
  readonly question?: OpenApproval['question'];
}

interface RequestedCall {
  readonly session_id: string;
  readonly action_id: string;
  readonly type: string;
  readonly name?: string | undefined;
}

export const approvalPath = (session: string, approval: string): string =>
  `/agent/session/${session}/approvals/${approval}`;

function labelOf({ action_id: id, type, name }: RequestedCall): string {
  const what = [type, ...(name === undefined || name === type ? [] : [name])].join(' ');
  return visible(`${id} (${what})`);
}

export function approvalOf(event: EventOf<'approval_requested'>): Question {
  const { data, session_id, action_id, action_name: name } = event;
  const label = labelOf({ session_id, action_id, type: data.type, name });
  return approval({ ...data, path: approvalPath(session_id, data.approval_id), label });
}

export function openApproval(open: OpenApproval): Question {
  return approval({
    ...open,
    path: approvalPath(open.session_id, open.approval_id),
    label: labelOf({ ...open, name: open.name ?? undefined }),
  });
}

function approval(requested: Requested): Question {
  return { path: requested.path, put: async (ask, api) => await decide(requested, ask, api) };
}

async function decide(requested: Requested, ask: Ask, api: Api): Promise<boolean> {
  const { path, label, bytes, sha256, reason = null, question = null } = requested;
  console.log(pc.yellow(`  ? ${label} waits for your ${question === null ? 'approval' : 'answer'}`));
  if (reason !== null) console.log(`    ${visible(reason)}`);
  if (question !== null) console.log(askedBy(question, process.stdout.columns || 80));
  const isHere = requested.parameters !== undefined && requested.parameters !== null;
  if (isHere || bytes <= PRINTED_BYTES) {
    const { parameters, inputs } = isHere ? requested : await api.read<Requested>(path);
    console.log(shown(parameters));
    if (Object.keys(inputs ?? {}).length > 0) console.log(`  inputs\n${shown(inputs)}`);
  } else console.log(`    too long to show; read it before you decide: ${api.curl(path)}`);
  console.log(pc.dim(`    ${bytes} bytes, sha256 ${sha256}`));
  const said = await ask(question === null ? '  approve? [y/N] ' : '  answer? [y/N] ');
  if (said === null) {
    console.log(`    decide with: ${api.curl(path, { decision: 'approve' })}`);
    return false;
  }
  const isApproved = /^y(es)?$/i.test(said.trim());
  const note = isApproved ? '' : ((await ask('  reason (optional) ')) ?? '').trim();
  const content = isApproved && question?.schema !== undefined ? await valuesOf(question.schema, ask) : {};
  const body = { decision: isApproved ? 'approve' : 'deny', ...(note === '' ? {} : { note }), ...content };
  // Another client may have decided meanwhile; its decision counts.
  await api.call(path, body).catch((fault: unknown) => console.log(pc.red(`  ${messageOf(fault)}`)));
  return true;
}

/** Asks for each value; nothing is sent if none is given, so that the defaults count. The session validates them. */
async function valuesOf({ properties }: JsonObject, ask: Ask): Promise<{ readonly content?: JsonObject }> {
  const content: [string, Json][] = [];
  for (const [name, property] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const { type = 'string', default: preset } = isJsonObject(property) ? property : {};
    const said = await ask(`  ${visible(`${name} (${String(type)})`)}${preset === undefined ? '' : ' [default] '}: `);
    const text = (said ?? '').trim();
    if (text !== '') content.push([name, valueOf(text, type)]);
    else if (preset !== undefined) content.push([name, preset]);
  }
  // fromEntries defines own properties, even for `__proto__`.
  return content.length === 0 ? {} : { content: Object.fromEntries(content) };
}

/** A text that is not of the type is sent as it is, and refused with the reason. */
function valueOf(text: string, type: Json): Json {
  if (type === 'array') return text.split(',').map((part) => part.trim());
  if (type === 'boolean' && /^(y|yes|true|n|no|false)$/i.test(text)) return /^(y|yes|true)$/i.test(text);
  const isNumber = type === 'number' || type === 'integer';
  return isNumber && Number.isFinite(Number(text)) ? Number(text) : text;
}
