import { nearestNames } from '../../src/domain/nearest.ts';
import type { Client, SessionEntry } from '../../src/client/index.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { numberOption, textOption, wordOption } from '../option-values.ts';
import { clientOf } from '../terminal/client.ts';
import { exportedLines } from '../terminal/exported-lines.ts';
import { sessionId } from '../terminal/session-id.ts';
import { visible } from '../terminal/visible.ts';

/** Sessions that are listed without `--limit`, with it at most, and per request. */
const LISTED = 20;
const MOST_LISTED = 10_000;
const PAGE = 100;
/** Runs that `show` lists. */
const SHOWN_RUNS = 20;
const TITLE_CHARS = 60;

type Subcommand = (client: Client, call: CommandCall) => Promise<void>;

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = { list, show, delete: remove, export: exportOne };

export const command: Command = {
  name: 'sessions',
  summary: 'Lists sessions; shows, deletes or exports one.',
  usage:
    '[list | show <id> | delete <id> | export <id>] [--agent <name>] [--user <id>] [--status <word>] [--limit <n>]',
  help: `  list             the default: newest activity first
  show <id>        the session and its latest runs
  delete <id>      cancels its runs and deletes it, without a question
  export <id>      everything of it as JSON Lines (docs/http.md); cortex replay reads them
  --agent <name>   lists sessions with this agent
  --user <id>      lists sessions of this user
  --status <word>  lists sessions that are running, waiting or idle
  --limit <n>      lists at most so many; default: ${LISTED}`,
  example: 'cortex sessions list --agent assistant --status waiting',
  options: {
    agent: { type: 'string' },
    user: { type: 'string' },
    status: { type: 'string' },
    limit: { type: 'string' },
  },
  isRemote: true,
  positionals: [0, 2],
  run: async (call) => {
    const [name = 'list', ...ids] = call.positionals;
    const known = Object.keys(SUBCOMMANDS);
    const run = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
    if (run === undefined) {
      const near = nearestNames(name, known);
      const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
      throw new UsageError(`sessions "${visible(name.slice(0, 100))}" is unknown (${hint}known: ${known.join(', ')})`);
    }
    if (ids.length !== (name === 'list' ? 0 : 1)) {
      throw new UsageError(`sessions ${name} takes ${name === 'list' ? 'no id' : 'the id of one session'}`);
    }
    await run(clientOf(call), call);
    return EXIT.ok;
  },
};

async function list(client: Client, call: CommandCall): Promise<void> {
  const limit = numberOption(call, 'limit', { least: 1, most: MOST_LISTED }) ?? LISTED;
  const filter = {
    agent: textOption(call, 'agent'),
    userId: textOption(call, 'user'),
    status: wordOption(call, 'status', ['running', 'waiting', 'idle']),
  };
  const sessions: SessionEntry[] = [];
  let before: string | undefined;
  let isMore = true;
  while (isMore && sessions.length < limit) {
    const page = await client.sessions({ ...filter, limit: Math.min(PAGE, limit - sessions.length), before });
    sessions.push(...page.sessions);
    isMore = page.next !== null;
    before = page.next ?? undefined;
  }
  if (call.json) return call.print(JSON.stringify({ sessions, more: isMore }));
  if (sessions.length === 0) call.print('no sessions');
  for (const { session_id: id, status, updated_at: at, agent, title } of sessions) {
    const line = `${id}  ${status.padEnd(7)}  ${timeOf(at)}  ${visible(agent)}`;
    call.print(title === null ? line : `${line}  ${visible(short(title))}`);
  }
  if (isMore) call.tell(`more than ${sessions.length}: --limit <n> lists more`);
}

async function show(client: Client, call: CommandCall): Promise<void> {
  const session = client.session(sessionId(call.positionals[1] ?? ''));
  const [document, { runs, next }] = await Promise.all([session.document(), session.runs({ limit: SHOWN_RUNS })]);
  if (call.json) return call.print(JSON.stringify({ session: document, runs, more_runs: next !== null }));
  const { session_id: id, agent, kind, status, created_at: created, updated_at: updated, user_id: user } = document;
  call.print(`${id}  ${status}  ${kind} with ${visible(agent)}${user === null ? '' : `, user ${visible(user)}`}`);
  call.print(`created ${timeOf(created)}, updated ${timeOf(updated)}, ${document.message_count} messages`);
  if (next !== null) call.print(`the latest ${runs.length} of ${document.runs} runs:`);
  for (const { run_id: run, status, started_at: start, ended_at: end } of runs) {
    const duration = end === null ? '' : `  ${end - start} ms`;
    call.print(`  ${run}  ${status.padEnd(9)}  ${timeOf(start)}${duration}${run === document.head ? '  head' : ''}`);
  }
}

async function remove(client: Client, call: CommandCall): Promise<void> {
  const id = sessionId(call.positionals[1] ?? '');
  await client.session(id).delete();
  call.print(call.json ? JSON.stringify({ deleted: id }) : `deleted: ${id}`);
}

async function exportOne(client: Client, call: CommandCall): Promise<void> {
  for await (const line of exportedLines(client.session(sessionId(call.positionals[1] ?? '')))) call.print(line);
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

function short(title: string): string {
  return title.length <= TITLE_CHARS ? title : `${title.slice(0, TITLE_CHARS - 1)}…`;
}
