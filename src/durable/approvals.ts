/** The list of open approvals of a namespace: written by its sessions, and verified with them when it is read (J8). */
import { ERROR_TABLE } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import { approvalsDocument } from '../http/approvals-page.ts';
import type { DirectoryRpc, Env, Remote } from './env.ts';
import { listApprovals, settleApprovals } from './directory.ts';

/** Storage key of the ids that the list has for this session. */
const LISTED = 'approvals';

type Index = Pick<Remote<DirectoryRpc>, 'keepApprovals'>;

interface OutboxSource {
  readonly storage: Pick<DurableObjectStorage, 'kv'>;
  readonly sessionId: () => string;
  readonly index: () => Index;
  /** Ids of the open requests. */
  readonly ids: () => readonly string[];
  readonly open: (page: ApprovalsPage) => readonly OpenApproval[];
}

/**
 * Brings the list up to date with one session, after the session's own writes.
 *
 * Invariants:
 *  1. The ids that the list is known to have are stored, so a crash between the two writes repeats the second one.
 *  2. One write at a time; each replaces all entries of the session.
 *  3. Nothing is stored after `clear`, which precedes the deletion of the session.
 */
export class ApprovalsOutbox {
  readonly #source: OutboxSource;
  #written: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(source: OutboxSource) {
    this.#source = source;
  }

  /** Whether the list does not have the current requests yet. */
  get isBehind(): boolean {
    return !this.#isClosed && this.#ids() !== this.#listed();
  }

  /** Rejects if the list could not be written; it is then still behind. */
  async sync(): Promise<void> {
    if (!this.isBehind) return;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write());
    await this.#written;
  }

  /** Removes the session from the list. */
  async clear(): Promise<void> {
    this.#isClosed = true;
    await this.#written.catch(() => undefined);
    if (this.#listed() !== '') await this.#source.index().keepApprovals(this.#source.sessionId(), []);
  }

  async #write(): Promise<void> {
    if (!this.isBehind) return;
    const { storage, index, sessionId, open } = this.#source;
    const ids = this.#ids();
    const entries = ids === '' ? [] : open({ limit: limits.approvalsListed, after: null, only: ids.split(' ') });
    await index().keepApprovals(sessionId(), entries.map(withoutCall));
    storage.kv.put(LISTED, ids);
  }

  #ids(): string {
    return this.#source.ids().slice(0, limits.approvalsListed).join(' ');
  }

  #listed(): string {
    return this.#source.storage.kv.get<string>(LISTED) ?? '';
  }
}

/** The call stays in its session, as do the values that a question asks for. */
function withoutCall({ question, ...approval }: OpenApproval): OpenApproval {
  const text = question === null ? null : { from: question.from, message: question.message };
  return { ...approval, complete: false, parameters: null, inputs: null, question: text };
}

/**
 * A page of all open approvals of a namespace. Each session on the page is asked for its calls; entries that are settled
 * according to their session are removed from the list, so a page may be shorter than its limit.
 */
export async function allOpenApprovals(
  env: Env,
  owner: string | null,
  page: ApprovalsPage,
): Promise<ReturnType<typeof approvalsDocument>> {
  const listed = await listApprovals(env, owner, { ...page, limit: page.limit + 1 });
  const { approvals: rows, next } = approvalsDocument(listed, page);
  const sessions = Map.groupBy(rows, ({ session_id: id }) => id);
  const asked = await Promise.all(
    [...sessions].map(async ([id, listed]) => [id, await askSession(env, id, listed)] as const),
  );
  const current = new Map(asked);
  const found = rows.map((row) => {
    const open = current.get(row.session_id) ?? null;
    return open === null ? row : (open.find(({ approval_id: id }) => id === row.approval_id) ?? null);
  });
  const settled = rows.filter((_row, at) => found[at] === null);
  if (settled.length > 0) await settleApprovals(env, owner, settled);
  return { approvals: found.filter((one) => one !== null), next };
}

/** The open ones of these requests, with their calls; null if the session cannot say. */
async function askSession(
  env: Env,
  id: string,
  listed: readonly OpenApproval[],
): Promise<readonly OpenApproval[] | null> {
  const only = listed.map(({ approval_id: approval }) => approval);
  try {
    const reply = await env.SESSIONS.getByName(id).openApprovals({ limit: only.length, after: null, only });
    if (reply.type === 'ok') return reply.value;
    return ERROR_TABLE[reply.code].status === 404 ? [] : null;
  } catch {
    return null;
  }
}
