import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { isSet, textOption } from '../option-values.ts';
import { connectionOf, request } from '../terminal/connection.ts';
import { visible } from '../terminal/visible.ts';

interface Fact {
  readonly key: string;
  readonly value: string;
  readonly updated_at: number;
}

export const command: Command = {
  name: 'memory',
  summary: 'Lists the facts that an agent keeps about a user, and deletes them.',
  usage: '[list | forget <key> | forget] --agent <name> --user <id> [--all]',
  help: `  list            the default: the facts in the order of their keys
  forget <key>    deletes one fact
  forget --all    deletes all of them, without a question
  --agent <name>  the agent that keeps them
  --user <id>     the user`,
  example: 'cortex memory forget favourite_colour --agent concierge --user zoe',
  options: { agent: { type: 'string' }, user: { type: 'string' }, all: { type: 'boolean' } },
  isRemote: true,
  positionals: [0, 2],
  run: async (call) => {
    const [name = 'list', key] = call.positionals;
    if (name === 'list') await list(call);
    else if (name === 'forget') await forget(call, key ?? null);
    else throw new UsageError(`memory "${visible(name.slice(0, 100))}" is unknown (known: list, forget)`);
    return EXIT.ok;
  },
};

async function list(call: CommandCall): Promise<void> {
  if (call.positionals.length > 1 || isSet(call, 'all')) throw new UsageError('memory list takes no key and no --all');
  const document = (await ask(call, 'GET', null)) as { readonly facts: readonly Fact[] };
  if (call.json) return call.print(JSON.stringify(document));
  if (document.facts.length === 0) call.print('no facts');
  for (const { key, value, updated_at: at } of document.facts) {
    call.print(`${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}  ${visible(key)}: ${visible(value)}`);
  }
}

async function forget(call: CommandCall, key: string | null): Promise<void> {
  if ((key === null) !== isSet(call, 'all')) throw new UsageError('memory forget takes one key, or --all');
  const document = (await ask(call, 'DELETE', key)) as { readonly forgotten: number };
  const count = document.forgotten;
  call.print(call.json ? JSON.stringify(document) : `forgotten: ${count} ${count === 1 ? 'fact' : 'facts'}`);
}

/** @param key null: all facts */
async function ask(call: CommandCall, method: 'GET' | 'DELETE', key: string | null): Promise<unknown> {
  const path = `/agent/${required(call, 'agent')}/memory${key === null ? '' : `/${encodeURIComponent(key)}`}`;
  const response = await request(connectionOf(call), `${path}?user_id=${required(call, 'user')}`, { method });
  return await response.json();
}

/** Encoded for a URL. @throws UsageError */
function required(call: CommandCall, name: 'agent' | 'user'): string {
  const value = textOption(call, name);
  if (value !== undefined && value !== '') return encodeURIComponent(value);
  throw new UsageError(`memory needs --${name}`);
}
