/**
 * Commands of the chat about its session: other sessions, other answers, other branches (C4, C6); its files are in files.ts.
 *
 * Owns which session the chat is in, and what was listed last. Does not own how a run is shown (follow.ts).
 */
import { nearestNames } from '../../src/domain/nearest.ts';
import { Refusal } from '../terminal/connection.ts';
import { isSessionId } from '../terminal/session-id.ts';
import { visible } from '../terminal/visible.ts';
import { branchesOf } from './branches.ts';
import type { Branch, RunEntry } from './branches.ts';
import { exchangeOf, short, shownExchange } from './exchange.ts';
import type { Message } from './exchange.ts';
import { FILE_COMMANDS, FILE_USAGES, FileCommands } from './files.ts';
import type { Api, Ask } from './question.ts';

export const COMMANDS = `  /attach <path or URL>   sends a file with your next message
  /retry                  answers your last message again
  /edit <text>            changes your last message
  /branches               lists the branches of the conversation
  /switch <number>        continues another branch
  /fork                   continues in a new session with the conversation so far
${FILE_COMMANDS}
  /sessions               lists sessions, newest activity first
  /open <number or id>    continues another session
  /help                   prints these commands
  /exit, /quit            end the chat, as Ctrl-D and an empty line do

Ctrl-C stops the run. With a space before its "/", a line is a message.`;

/** What a command has done. */
export interface Done {
  /** To print. */
  readonly text?: string;
  /** The events of a run that it has started. */
  readonly answer?: Response;
  /** Another session was opened. */
  readonly joined?: string;
  /** The chat ends. */
  readonly isOver?: true;
}

interface SessionEntry {
  readonly session_id: string;
  readonly agent: string;
  readonly title: string | null;
  readonly status: string;
  readonly updated_at: number;
}

const LISTED = 20;
const TITLE_CHARS = 60;
const COMMAND = /^\/(\S*)(?:\s+([^]*))?$/;
/** What is printed where a command cannot be used like this. */
const USAGES: ReadonlyMap<string, string> = new Map([
  ['attach', '/attach <path or URL of a file>'],
  ['retry', '/retry, with nothing after it; /edit <text> changes your last message'],
  ['edit', '/edit <your changed message>'],
  ['branches', '/branches, with nothing after it'],
  ['switch', '/switch <number of /branches>'],
  ['fork', '/fork, with nothing after it'],
  ['sessions', '/sessions, with nothing after it'],
  ['open', '/open <number of /sessions, or a session id>'],
  ...FILE_USAGES,
  ['help', '/help, with nothing after it'],
  ['exit', '/exit, with nothing after it'],
  ['quit', '/quit, with nothing after it'],
]);
const TAKES_TEXT: ReadonlySet<string> = new Set(['edit', 'switch', 'open', 'attach']);

/** The text of a line that is a message: after a space, it may begin with "/". */
export function messageIn(line: string): string {
  return /^\s+\//.test(line) ? line.trimStart() : line;
}

export class Commands {
  session: string;
  readonly #api: Api;
  readonly #files: FileCommands;
  #sessions: readonly string[] = [];
  /** Last runs of the branches. */
  #branches: readonly string[] = [];

  /** @param ask for what a command needs an answer to */
  constructor(api: Api, session: string, ask: Ask) {
    this.#api = api;
    this.#files = new FileCommands(api, ask);
    this.session = session;
  }

  /** @returns null if the line is a message. @throws Refusal of the system */
  async command(line: string): Promise<Done | null> {
    const [, typed, rest = ''] = COMMAND.exec(line) ?? [];
    if (typed === undefined) return null;
    const name = typed.toLowerCase();
    const given = rest.trim();
    const usage = USAGES.get(name);
    if (usage === undefined) return { text: unknownCommand(typed) };
    if (FILE_USAGES.has(name)) return { text: await this.#files.command(name, given, this.session) };
    if ((given === '') === TAKES_TEXT.has(name)) return { text: `usage: ${usage}` };
    switch (name) {
      case 'retry':
        return await this.#again({});
      case 'edit':
        return await this.#again({ content: given });
      case 'branches':
        return { text: await this.#listBranches() };
      case 'switch':
        return await this.#switch(given);
      case 'fork':
        return await this.#fork();
      case 'sessions':
        return { text: await this.#listSessions() };
      case 'open':
        return await this.#open(given);
      case 'help':
        return { text: COMMANDS };
      case 'exit':
      case 'quit':
        return { isOver: true };
      default:
        return null;
    }
  }

  get #path(): string {
    return `/agent/session/${this.session}`;
  }

  async #again(change: object): Promise<Done> {
    let hasMessages = false;
    for (let before: string | null = ''; before !== null;) {
      const query: string = before === '' ? '' : `?before=${encodeURIComponent(before)}`;
      const page: { messages: Message[]; next: string | null } = await this.#api.read(`${this.#path}/history${query}`);
      hasMessages ||= page.messages.length > 0;
      const run = page.messages.findLast(canSendAgain)?.run_id;
      if (run !== undefined) return { answer: await this.#api.stream(`${this.#path}/runs/${run}/retry`, change) };
      before = page.next;
    }
    return {
      text: hasMessages
        ? 'This branch has no message that can be sent again.'
        : 'This conversation has no messages yet.',
    };
  }

  async #listBranches(): Promise<string> {
    const { runs, head } = await this.#api.read<{ runs: RunEntry[]; head: string | null }>(`${this.#path}/runs`);
    const branches = branchesOf(runs, head).slice(-LISTED);
    this.#branches = branches.map(({ end }) => end);
    if (branches.length === 0) return 'This conversation has no messages yet.';
    const lines = await Promise.all(
      branches.map(async (branch, index) => {
        const isCurrent = branch.end === head;
        return `${isCurrent ? '*' : ' '} ${index + 1}. ${await this.#described(branch)}${isCurrent ? ' (current)' : ''}`;
      }),
    );
    return lines.join('\n');
  }

  /** The first message that only this branch has, with its answer. */
  async #described({ start, versionOf, later }: Branch): Promise<string> {
    const [own, before] = await Promise.all(
      [start.run_id, versionOf].map(async (run) =>
        run === null ? null : await exchangeOf(this.#api, this.#path, run),
      ),
    );
    const { question = '', answer = null } = own ?? {};
    const mark = before == null ? '' : before.question === question ? 'retry: ' : 'edited: ';
    const more = later === 0 ? '' : ` (${later} more message${later === 1 ? '' : 's'})`;
    return `${mark}${short(question, TITLE_CHARS)} → ${answer === null ? '…' : short(answer, TITLE_CHARS)}${more}`;
  }

  async #switch(given: string): Promise<Done> {
    if (!/^\d+$/.test(given)) return { text: `usage: ${USAGES.get('switch')}` };
    if (this.#branches.length === 0) await this.#listBranches();
    if (this.#branches.length === 0) return { text: 'This conversation has no messages yet.' };
    const run = this.#branches[Number(given) - 1];
    if (run === undefined) return { text: noSuch(given, this.#branches) };
    await this.#api.call(`${this.#path}/head`, { run_id: run });
    const exchange = shownExchange(await exchangeOf(this.#api, this.#path));
    return { text: `The conversation continues on branch ${given}:\n${exchange}` };
  }

  async #fork(): Promise<Done> {
    const { message_count: count } = await this.#api.read<{ message_count: number }>(this.#path);
    if (count === 0) return { text: 'There is nothing to fork: the session has no message yet.' };
    const response = await this.#api.call(`${this.#path}/fork`, {});
    const { session_id: id } = (await response.json()) as { session_id: string };
    this.#branches = [];
    this.session = id;
    return { text: `You are in session ${id} now, with the conversation so far.` };
  }

  async #listSessions(): Promise<string> {
    const { sessions } = await this.#api.read<{ sessions: SessionEntry[] }>(`/sessions?limit=${LISTED}`);
    this.#sessions = sessions.map(({ session_id: id }) => id);
    const lines = sessions.map(({ session_id: id, agent, title, status, updated_at: at }, index) => {
      const time = new Date(at).toISOString().slice(0, 16).replace('T', ' ');
      const shown = short(title ?? 'no message yet', TITLE_CHARS);
      return `${id === this.session ? '*' : ' '} ${index + 1}. ${shown} (${visible(agent)}, ${status}, ${time})`;
    });
    return lines.length === 0 ? 'No sessions were found.' : lines.join('\n');
  }

  async #open(given: string): Promise<Done> {
    const isId = isSessionId(given);
    if (!isId && !/^\d+$/.test(given)) return { text: `usage: ${USAGES.get('open')}` };
    if (!isId && this.#sessions.length === 0) await this.#listSessions();
    if (!isId && this.#sessions.length === 0) return { text: 'No sessions were found.' };
    const id = isId ? given : this.#sessions[Number(given) - 1];
    if (id === undefined) return { text: noSuch(given, this.#sessions) };
    try {
      await this.#api.call(`/agent/session/${id}`);
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault;
      return { text: `not opened: ${fault.message}. You are still in session ${this.session}.` };
    }
    this.session = id;
    this.#branches = [];
    return { joined: id };
  }
}

/** An action that runs again has a run that follows the one that it repeats: only a message can be sent again. */
function canSendAgain({ role, run_id: run, steered, retry_of: of, branches = [] }: Message): boolean {
  return role === 'user' && run !== undefined && steered !== true && (of === undefined || branches.includes(of));
}

function noSuch(given: string, listed: readonly string[]): string {
  return `There is no ${given.slice(0, TITLE_CHARS)}; choose 1 to ${listed.length}.`;
}

function unknownCommand(name: string): string {
  const [near] = nearestNames(name, [...USAGES.keys()]);
  const meant = near === undefined ? '' : ` Did you mean /${near}?`;
  return `No command is called /${short(name, TITLE_CHARS)}.${meant} /help lists them.`;
}
