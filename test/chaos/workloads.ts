/** The workloads during the kills, by name. Every action has its own token. */
const action = (type: string, id: string, name: string | null, parameters: object, more: object = {}): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify({ ...(name === null ? {} : { name }), parameters, ...more })}</action>`;

const unsafe = (run: string, id: string, more: object = {}, delayMs = 250): string =>
  action('tool', id, 'spend', { token: `${run}-${id}`, delay_ms: delayMs }, more);
const repeatable = (run: string, id: string, more: object = {}, parameters: object = {}): string =>
  action('tool', id, 'look_up', { token: `${run}-${id}`, delay_ms: 60, ...parameters }, more);

export const WORKLOADS: Readonly<Record<string, (run: string) => string>> = {
  diamond: (run) =>
    `<thought>Four of them.</thought>${unsafe(run, 'a')}${unsafe(run, 'b', { depends_on: ['a'] })}${repeatable(run, 'c', { depends_on: ['a'] })}${unsafe(run, 'd', { depends_on: ['b', 'c'] })}<response final="true">$d.value and $c.value</response>`,
  chain: (run) =>
    `${unsafe(run, 'a')}${['b', 'c', 'd', 'e'].map((id, index) => unsafe(run, id, { depends_on: [['a', 'b', 'c', 'd'][index]] })).join('')}<response final="true">$e.value</response>`,
  retries: (run) =>
    `${[1, 2, 3, 4, 5, 6].map((n) => repeatable(run, `f${n}`, { retry: { max_attempts: 4, delay: 0.1 } }, { fail_times: n % 3 })).join('')}<response final="true">$f1.value $f6.value</response>`,
  partial: (run) =>
    `<response final="false">First $a.value.</response>${repeatable(run, 'a')}<response final="false">Then, at length: ${'word '.repeat(60)}</response>${unsafe(run, 'b', { when: '$a.value != ""' })}<response final="true">$b.value</response>`,
  children: (run) =>
    `${action('agent', 'left', 'chaos_child', { message: `diamond ${run}-left` })}${action('agent', 'right', 'chaos_child', { message: `chain ${run}-right` })}<response final="true">$left $right</response>`,
  python: (run) =>
    `${action('python', 'p', null, { code: 'import time; time.sleep(0.2); print(6 * 7)' })}${unsafe(run, 'after', { depends_on: ['p'] })}<response final="true">$p</response>`,
};

/** The output of the scripted model for "<workload> <run>". */
export function scriptOf(message: string): string {
  const [, name = '', run = ''] = /(\w+) ([\w-]+)\s*$/.exec(message.trim()) ?? [];
  return WORKLOADS[name]?.(run) ?? '<response final="true">nothing to do</response>';
}

const MANIFEST_TOOL = (name: string, effects: string, url: string): string => `kind: Tool
version: "1.0"
name: ${name}
summary: Counts its token and returns it.
implementation: { type: http, method: POST, url: "${url}" }
effects: ${effects}
timeout: 20
parameters:
  type: object
  required: [token]
  properties:
    token: { type: string }
    delay_ms: { type: integer }
    fail_times: { type: integer }
`;

const MANIFEST_AGENT = (name: string, agents: string): string => `kind: Agent
version: "1.0"
name: ${name}
summary: Carries out what it is told.
persona: You carry out what you are told.
import: { tools: [spend, look_up], agents: [${agents}] }
capabilities: [python]
`;

export function manifests(toolUrl: string): Record<string, string> {
  return {
    'tools/spend.yaml': MANIFEST_TOOL('spend', 'unsafe', `${toolUrl}/unsafe`),
    'tools/look_up.yaml': MANIFEST_TOOL('look_up', 'idempotent', `${toolUrl}/idempotent`),
    'agents/chaos.yaml': MANIFEST_AGENT('chaos', 'chaos_child'),
    'agents/chaos_child.yaml': MANIFEST_AGENT('chaos_child', ''),
  };
}
