/**
 * Every sentence of the prompt about acting is true of the engine, or is listed as advice (L4). A sentence that is changed in
 * the prompt fails here until its claim is changed with it.
 */
import { describe, expect, test } from 'vitest';
import { promptParts } from '../../../../src/protocol/prompt/prompt.ts';
import { bundled } from '../../../support/bundled.ts';
import { ACTION_CHECKS } from './action-checks.ts';
import { BLOCK_CHECKS } from './block-checks.ts';
import { CLAIMS, PROMPT_FORMS, wordsOf } from './claims.ts';
import type { PromptForm } from './claims.ts';
import { NATIVE_CHECKS } from './native-checks.ts';
import { speaking } from './scene.ts';

/** Headings, and the marks of lists. */
const STRUCTURE = /^(# How you act|Actions:|Your response:)$|^- /gm;

function partsIn(form: PromptForm): Readonly<Record<string, string>> {
  const assistant = bundled.agent('assistant');
  if (assistant === null) throw new Error('there is no assistant');
  const parts = promptParts({ ...assistant, agent: speaking(assistant.agent, form) });
  return Object.fromEntries(parts.map(({ id, text }) => [id, text]));
}

describe('[L4] the claims of the prompt', () => {
  test.each(PROMPT_FORMS)('are all of its sentences about acting, word for word (%s)', (form) => {
    const parts = partsIn(form);
    for (const id of ['protocol', 'actions', 'response', 'rules'] as const) {
      let rest = parts[id] ?? '';
      for (const claim of CLAIMS.filter(({ part }) => part === id)) {
        const words = wordsOf(claim, form);
        if (words === null) continue;
        expect(rest).toContain(words);
        rest = rest.replace(words, '');
      }
      expect(rest.replaceAll(STRUCTURE, '').trim()).toBe('');
    }
  });

  test.each(PROMPT_FORMS)('that are no advice are checked, and nothing else is (%s)', (form) => {
    const claimed = CLAIMS.flatMap((claim) =>
      claim.check === null || wordsOf(claim, form) === null ? [] : [claim.check],
    );
    const checks = form === 'tool_calls' ? NATIVE_CHECKS : { ...ACTION_CHECKS, ...BLOCK_CHECKS };
    expect(Object.keys(checks).toSorted()).toEqual(claimed.toSorted());
  });
});

describe.each(['full', 'compact'] as const)('[L4] the engine does what the prompt says, %s form', (form) => {
  test.each(Object.entries({ ...BLOCK_CHECKS, ...ACTION_CHECKS }))('%s', async (_, check) => {
    expect.hasAssertions();
    await check(form);
  });
});

describe('[L4] [P17] the engine does what the prompt says, calls of functions', () => {
  test.each(Object.entries(NATIVE_CHECKS))('%s', async (_, check) => {
    expect.hasAssertions();
    await check();
  });
});
