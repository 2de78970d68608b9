/** Secrets in manifests (X3): only those that begin with `TOOL_`, only in the requests of tools, only when they run. */
import type { ImportedDefinitions, ToolDefinition } from '../domain/manifest.ts';

const NAMED = /\$\{(TOOL_[A-Z0-9_]{1,64})\}/g;

/**
 * The definitions with `${TOOL_…}` in place in addresses and headers of http tools. A secret that is not set, or that the
 * agent's list leaves out, stays as it is written; the tool says so when it is called.
 *
 * @param allowed names that an agent allows its tools; none = what the tools name
 * @param secret the deployment's secret of this name, or null
 */
export function withSecrets<T extends ImportedDefinitions>(
  definitions: T,
  allowed: readonly string[],
  secret: (name: string) => string | null,
): T {
  const fill = (text: string): string =>
    text.replace(NAMED, (written, name: string) => {
      const value = allowed.length === 0 || allowed.includes(name) ? secret(name) : null;
      // what a secret holds is no text with variables in it
      return value === null ? written : value.split('${').join('$${');
    });
  const tools = new Map([...definitions.tools].map(([name, tool]) => [name, inRequest(tool, fill)]));
  return { ...definitions, tools };
}

/** A tool with its request's texts replaced; the same tool when it makes none. */
export function inRequest(tool: ToolDefinition, fill: (text: string) => string): ToolDefinition {
  const { implementation } = tool;
  if (implementation.type !== 'http') return tool;
  const headers = Object.fromEntries(Object.entries(implementation.headers).map(([name, text]) => [name, fill(text)]));
  return { ...tool, implementation: { ...implementation, url: fill(implementation.url), headers } };
}
