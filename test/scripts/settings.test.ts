/** What `npm start` hands to the Worker (H8). */
import { expect, test } from 'vitest';
import { readVars } from '../../scripts/system.ts';

test('[H8] [X3] settings and the secrets of tools come from the environment, and nothing else of it', () => {
  const vars = readVars({ API_KEYS: 'a:run:k', TOOL_HOOK: 'signs', TOOL_EMPTY: '', LLM_MODEL: '', HOME: '/root' });
  expect(vars).toMatchObject({ API_KEYS: 'a:run:k', TOOL_HOOK: 'signs' });
  expect(vars).not.toHaveProperty('HOME');
  expect(vars).not.toHaveProperty('TOOL_EMPTY');
});
