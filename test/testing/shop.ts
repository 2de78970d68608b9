/** A small project, as `cortex build` writes it. */
import { z } from 'zod';
import { loadManifests } from '../../src/catalog/load.ts';
import { defineTool, schemaOf, ToolError } from '../../src/code-tools/define-tool.ts';
import type { Project } from '../../src/durable/project.ts';

const stock = defineTool({
  name: 'stock',
  description: 'Items in stock.',
  parameters: z.object({ item: z.string().min(1) }),
  effects: 'idempotent',
  async run({ item }, { env, secrets, fetch, artifacts, progress }) {
    if (item === 'nothing') throw new ToolError('No such item', { code: 'unknown_item' });
    progress('counting');
    const response = await fetch('https://stock.example/items', { headers: { 'x-key': secrets['TOOL_STOCK'] ?? '' } });
    artifacts.write('list.txt', 'one\ntwo');
    const count = (env['COUNTS'] as { of(item: string): number }).of(item);
    return { item, count, heading: await response.text() };
  },
});

const MANIFESTS = {
  'agents/clerk.yaml': `
kind: Agent
version: "1.0"
name: clerk
summary: Answers questions about orders.
persona: You work for a shop.
import: { tools: [orders, stock, weather, locate, report, calculator, refund, page], agents: [buyer], workflows: [restock], relics: [notes] }
capabilities: [python]
client_tools: allow
`,
  'agents/buyer.yaml': `
kind: Agent
version: "1.0"
name: buyer
summary: Orders new items.
persona: You order items.
import: { tools: [calculator, refund, locate] }
memory: { facts: true }
`,
  'workflows/restock.yaml': `
kind: Workflow
version: "1.0"
name: restock
summary: Counts an item twice.
inputs: { type: object, properties: { count: { type: number } } }
steps:
  - { name: doubled, type: tool, target: calculator, parameters: { expression: "$(trigger.count) * 2" } }
outputs: { doubled: { source: steps.doubled } }
`,
  'tools/calculator.yaml': `
kind: Tool
version: "1.0"
name: calculator
summary: Computes.
implementation: { type: builtin, entrypoint: calculator }
parameters: { type: object, required: [expression], properties: { expression: { type: string } } }
`,
  'tools/page.yaml': `
kind: Tool
version: "1.0"
name: page
summary: Reads a page.
implementation: { type: builtin, entrypoint: web_fetch }
parameters: { type: object, required: [url], properties: { url: { type: string } } }
`,
  'tools/orders.yaml': `
kind: Tool
version: "1.0"
name: orders
summary: Orders of a customer.
effects: idempotent
timeout: 30s
retry: { max_attempts: 3, backoff: exponential, delay: 10s }
implementation: { type: http, method: GET, url: "https://orders.example/by/{customer}", headers: { x-key: "\${TOOL_ORDERS}" } }
parameters: { type: object, required: [customer], properties: { customer: { type: string } } }
`,
  'tools/weather.yaml': `
kind: Tool
version: "1.0"
name: weather
summary: The weather.
effects: pure
implementation: { type: http, method: GET, url: "https://weather.example/now" }
parameters: { type: object }
`,
  'tools/locate.yaml': `
kind: Tool
version: "1.0"
name: locate
summary: Where the user is.
implementation: { type: client }
parameters: { type: object }
`,
  'tools/refund.yaml': `
kind: Tool
version: "1.0"
name: refund
summary: Pays back.
approval: always
implementation: { type: http, method: POST, url: "https://bank.example/refund" }
parameters: { type: object, properties: { amount: { type: number } } }
`,
  'tools/report.yaml': `
kind: Tool
version: "1.0"
name: report
summary: Writes a report.
implementation: { type: container, image: reports }
parameters: { type: object }
`,
  'tools/stock.yaml': `
kind: Tool
version: "1.0"
name: stock
implementation: { type: code, bindings: [COUNTS], secrets: [TOOL_STOCK] }
`,
  'relics/notes.yaml': `
kind: Relic
version: "1.0"
name: notes
summary: Notes.
implementation: { type: edge, store: kv }
scope: shared
endpoints: [list, get, set, delete]
`,
};

const loaded = loadManifests(
  Object.entries(MANIFESTS).map(([path, text]) => ({ path, text })),
  {
    codeTools: new Map([
      [
        'stock',
        {
          file: 'tools/stock.ts',
          name: 'stock',
          description: stock.description,
          parameters: schemaOf(stock),
          effects: stock.effects,
        },
      ],
    ]),
  },
);
if (loaded.problems.length > 0) throw new Error(JSON.stringify(loaded.problems, null, 2));

export const shop: Project = { version: 'test', catalog: loaded.catalog.data, sources: {}, tools: { stock } };

/** An action in the model's text. */
export function action(type: string, name: string, id: string, parameters: object, more = ''): string {
  return `<action type="${type}" name="${name}" mode="async" id="${id}"${more}>${JSON.stringify(parameters)}</action>`;
}

export function answer(text: string): string {
  return `<response final="true">${text}</response>`;
}
