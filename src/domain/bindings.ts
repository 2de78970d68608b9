/** The Worker's bindings and classes that the runtime itself uses, and what code tools may use beside them (K2). */

/**
 * The classes of Durable Objects by binding. `wrangler.toml` names each in a binding and in a migration, and the Worker's
 * entry exports it.
 */
export const RUNTIME_OBJECTS: Readonly<Record<string, string>> = {
  SESSIONS: 'SessionObject',
  SCHEDULES: 'ScheduleObject',
  CATALOGS: 'CatalogObject',
  RELICS: 'RelicObject',
  FEEDS: 'SharedFeedObject',
  DIRECTORY: 'DirectoryObject',
  STATUS: 'StatusObject',
};

/** Classes without a binding that the Worker's entry exports: the runtime reaches them through `ctx.exports`. */
export const RUNTIME_ENTRYPOINTS: readonly string[] = ['CodeToolHost', 'OutboundHost'];

/** Optional bindings of the runtime: the bucket of files, the runners as containers, and the console. */
const OPTIONAL = ['FILES', 'RUNNERS', 'ASSETS'];

/** Bindings of the runtime itself: they hold the data of all tenants. */
const RESERVED: ReadonlySet<string> = new Set([...Object.keys(RUNTIME_OBJECTS), ...OPTIONAL]);

/** Why a tool may not list this binding, or null. */
export function bindingIssue(name: string): string | null {
  return RESERVED.has(name) ? `${name} is a binding of the runtime, which tools may not use` : null;
}
