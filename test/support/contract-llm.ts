/** Setup of the tests in workerd: runs the provider contract's server, and a server that holds answers back, in Node. */
import type { TestProject } from 'vitest/node';
import { readScript } from '../../cli/scripted-llm/script.ts';
import { CONTRACT_SCRIPT } from '../llm/providers/contract-script.ts';
import { startGateServer } from './gate-server.ts';
import { startScriptedLlm } from '../../cli/scripted-llm/server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Base URL of the provider contract's server. */
    contractLlm: string;
    /** Base URL of the server of gate-server.ts. */
    gateServer: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await startScriptedLlm(readScript(CONTRACT_SCRIPT));
  const gate = await startGateServer();
  provide('contractLlm', server.baseUrl);
  provide('gateServer', gate.url);
  return async () => {
    await Promise.all([server, gate].map((one) => one[Symbol.asyncDispose]()));
  };
}
