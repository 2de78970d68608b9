/** Setup of the tests in workerd: runs the provider contract's server in Node. */
import type { TestProject } from 'vitest/node';
import { readScript } from '../../cli/scripted-llm/script.ts';
import { CONTRACT_SCRIPT } from '../llm/providers/contract-script.ts';
import { startScriptedLlm } from '../../cli/scripted-llm/server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Base URL of the provider contract's server. */
    contractLlm: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await startScriptedLlm(readScript(CONTRACT_SCRIPT));
  provide('contractLlm', server.baseUrl);
  return async () => {
    await server[Symbol.asyncDispose]();
  };
}
