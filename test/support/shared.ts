/** What the files of the tests of the whole system share (shared-host.ts). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const HOST = 'CORTEX_TEST_SHARED';

/** For a global setup: starts the process that has the shared parts. @returns ends it */
export async function hostShared(): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('shared-host.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [address] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(() => {
      throw new Error('The process of the shared parts ended at its start');
    }),
  ])) as [string];
  process.env[HOST] = address;
  return async () => {
    const exited = once(child, 'exit');
    child.stdin.end();
    await exited;
  };
}

/** Settings of the system with API keys, besides its keys: rules and patterns that meet only what names them. */
export const DEPLOYMENT = {
  // With everything that a file of settings may change: quotation marks, line breaks, dollars and backslashes.
  POLICIES: `- when: >-\n    action.name == "echo" && "text" in parameters && parameters.text.contains("it's $HOME")\n  do: deny\n  message: not $5\n`,
  REDACT: String.raw`["\\bsk-[A-Za-z0-9_-]{20,128}\\b"]`,
} as const;

/** Starts the part, unless another file has. `system` has a runner, `keyed` has API keys. @returns its address */
export async function sharedPart(name: 'system' | 'keyed' | 'chromium'): Promise<string> {
  return await asked(name);
}

/** A port of this machine that only the caller uses. The shared systems may call it, and answer the pages that it serves. */
export async function sharedPort(): Promise<number> {
  return Number(await asked('port'));
}

export interface Namespace {
  readonly name: string;
  /** Its only key, with the role `admin`. */
  readonly key: string;
  /** The header with the key. */
  readonly authorization: { readonly authorization: string };
  /** Address of the system with API keys. */
  readonly url: string;
}

/** A namespace of the system with API keys that only the caller uses. */
export async function sharedNamespace(): Promise<Namespace> {
  const { name, key } = JSON.parse(await asked('namespace')) as Pick<Namespace, 'name' | 'key'>;
  return { name, key, authorization: { authorization: `Bearer ${key}` }, url: await sharedPart('keyed') };
}

/** Of a manifest: its models are those of this server, not the demo model. */
export function modelAt(baseUrl: string): string {
  return `cognitive_engine: {primary: {provider: openai, model: scripted, endpoint: "${baseUrl}"}}\n`;
}

async function asked(name: string): Promise<string> {
  const response = await fetch(`${process.env[HOST] ?? ''}/${name}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`The shared ${name} did not start: ${text}`);
  return text;
}
