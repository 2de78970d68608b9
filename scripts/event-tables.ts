/** Writes the tables of events in docs/journal.md from the schemas: npm run docs */
import { readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { JOURNALED, LIVE } from '../src/domain/event-schemas.ts';

type Table = Readonly<Record<string, { readonly description: string; readonly data: { readonly shape: object } }>>;

function memberText([name, member]: [string, z.ZodType]): string {
  const description = member.description === undefined ? '' : `: ${member.description}`;
  return `\`${name}${member instanceof z.ZodExactOptional ? '?' : ''}\`${description}`;
}

function eventTable(table: Table): string {
  const rows = Object.entries(table).map(([type, { description, data }]) => {
    const members = Object.entries(data.shape) as [string, z.ZodType][];
    return `| \`${type}\` | ${description} | ${members.map(memberText).join('<br>')} |`;
  });
  return ['| type | meaning | `data` |', '|---|---|---|', ...rows].join('\n').replaceAll('|  |', '| |');
}

/** The page with its tables as they should be. */
export function withEventTables(page: string): string {
  const tables: Readonly<Record<string, Table>> = { journaled: JOURNALED, live: LIVE };
  return page.replaceAll(
    /(<!-- events: (journaled|live) -->\n)[^]*?(\n<!-- end -->)/g,
    (_whole, before: string, name: string, after: string) => `${before}\n${eventTable(tables[name] ?? {})}\n${after}`,
  );
}

if (import.meta.main) {
  const page = new URL('../docs/journal.md', import.meta.url);
  writeFileSync(page, withEventTables(readFileSync(page, 'utf8')));
}
