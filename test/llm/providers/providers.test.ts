import { afterAll, beforeAll } from 'vitest';
import { readScript } from '../../../cli/scripted-llm/script.ts';
import { startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import { CONTRACT_SCRIPT } from './contract-script.ts';
import { providerContract } from './provider-contract.ts';

let server: ScriptedLlm;

beforeAll(async () => {
  server = await startScriptedLlm(readScript(CONTRACT_SCRIPT));
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

providerContract(() => server.baseUrl);
