/** Names of the Worker's bindings that code tools may use (K2). */

/** Bindings of the runtime itself: they hold the data of all tenants. */
const RESERVED: ReadonlySet<string> = new Set([
  'SESSIONS',
  'EXECUTIONS',
  'RATES',
  'ENDPOINTS',
  'SCHEDULES',
  'CATALOGS',
  'RELICS',
  'IDENTITY',
  'FEEDS',
  'DIRECTORY',
  'CODE_TOOLS',
  'FILES',
  'RUNNERS',
  'ASSETS',
]);

/** Why a tool may not list this binding, or null. */
export function bindingIssue(name: string): string | null {
  return RESERVED.has(name) ? `${name} is a binding of the runtime, which tools may not use` : null;
}
