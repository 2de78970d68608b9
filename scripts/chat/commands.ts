/**
 * Commands of the chat about its session: other sessions, other answers, other branches (C4, C6).
 *
 * Owns which session the chat is in, and what was listed last. Does not own how a run is shown (follow.ts).
 */
import { visible } from '../terminal/visible.ts';
import type { Api } from './question.ts';

export const COMMANDS = `  /retry                  answers your last message again
  /edit <text>            changes your last message
  /branches               lists the branches of the conversation
  /switch <number>        continues another branch
  /fork                   continues in a new session with the conversation so far
  /sessions               lists sessions, newest activity first
  /open <number or id>    continues another session
  /help                   prints these commands`;

/** What a command has done. */
export interface Done {
  /** To print. */
  readonly text?: string;
  /** The events of a run that it has started. */
  readonly answer?: Response;
  /** Another session was opened. */
  readonly joined?: string;
}

interface Message {
  readonly role: string;
  readonly content: string | null;
  readonly run_id?: string;
  readonly steered?: true;
}

interface RunEntry {
  readonly run_id: string;
  readonly parent_run: string | null;
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
const COMMAND = /^\/([a-z]+)(?:\s+([^]*))?$/;

export class Commands {
  session: string;
  readonly #api: Api;
  #sessions: readonly string[] = [];
  #branches: readonly string[] = [];

  constructor(api: Api, session: string) {
    this.#api = api;
    this.session = session;
  }

  /** @returns null if the line is a message. @throws Refusal of the system */
  async command(line: string): Promise<Done | null> {
    const [, name, rest = ''] = COMMAND.exec(line.trim()) ?? [];
    const given = rest.trim();
    switch (name) {
      case 'retry':
        return await this.#again({});
      case 'edit':
        return given === '' ? { text: 'usage: /edit <your changed message>' } : await this.#again({ content: given });
      case 'branches':
        return { text: await this.#listBranches() };
      case 'switch':
        return await this.#switch(given);
      case 'fork':
        return await this.#fork();
      case 'sessions':
        return { text: await this.#listSessions() };
      case 'open':
        return this.#open(given);
      case 'help':
        return { text: COMMANDS };
      default:
        return null;
    }
  }

  get #path(): string {
    return `/agent/session/${this.session}`;
  }

  async #again(change: object): Promise<Done> {
    const { messages } = await this.#api.read<{ messages: Message[] }>(`${this.#path}/history`);
    const last = messages.findLast(
      ({ role, run_id: run, steered }) => role === 'user' && run !== undefined && steered !== true,
    );
    if (last?.run_id === undefined) return { text: 'There is no message yet.' };
    return { answer: await this.#api.call(`${this.#path}/runs/${last.run_id}/retry`, change) };
  }

  async #listBranches(): Promise<string> {
    const { runs, head } = await this.#api.read<{ runs: RunEntry[]; head: string | null }>(`${this.#path}/runs`);
    const parents = new Set(runs.map(({ parent_run: parent }) => parent));
    const ends = runs.map(({ run_id: id }) => id).filter((id) => !parents.has(id));
    this.#branches = ends.slice(-LISTED);
    if (ends.length === 0) return 'There is no message yet.';
    const lines = await Promise.all(
      this.#branches.map(async (run, index) => {
        const { messages } = await this.#api.read<{ messages: Message[] }>(`${this.#path}/history?run=${run}&limit=1`);
        const asked = messages.find(({ role }) => role === 'user')?.content ?? '';
        const said = messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
        return `${run === head ? '*' : ' '} ${index + 1}. ${short(asked)} → ${short(said)}`;
      }),
    );
    return lines.join('\n');
  }

  async #switch(given: string): Promise<Done> {
    if (this.#branches.length === 0) await this.#listBranches();
    const run = this.#branches[Number(given) - 1];
    if (run === undefined) return { text: 'usage: /switch <number of /branches>' };
    await this.#api.call(`${this.#path}/head`, { run_id: run });
    return { text: `The conversation continues on branch ${given}.` };
  }

  async #fork(): Promise<Done> {
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
      return `${id === this.session ? '*' : ' '} ${index + 1}. ${short(title ?? 'no message yet')} (${visible(agent)}, ${status}, ${time})`;
    });
    return lines.length === 0 ? 'There are no sessions.' : lines.join('\n');
  }

  #open(given: string): Done {
    const id = /^ses_[0-9a-f]{32}$/.test(given) ? given : this.#sessions[Number(given) - 1];
    if (id === undefined) return { text: 'usage: /open <number of /sessions, or a session id>' };
    this.session = id;
    this.#branches = [];
    return { joined: id };
  }
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return visible(line.length > TITLE_CHARS ? `${line.slice(0, TITLE_CHARS).toWellFormed()}…` : line);
}
