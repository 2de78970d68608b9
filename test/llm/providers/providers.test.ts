import { afterAll, beforeAll } from 'vitest';
import { readScript } from '../../../scripts/scripted-llm/script.ts';
import { startScriptedLlm } from '../../support/scripted-llm.ts';
import type { ScriptedLlm } from '../../support/scripted-llm.ts';
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
