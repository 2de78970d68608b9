import { inject } from 'vitest';
import { providerContract } from '../llm/providers/provider-contract.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Base URL of the provider contract's server (test/support/contract-llm.ts). */
    contractLlm: string;
  }
}

providerContract(() => inject('contractLlm'));
