/** What workflows are made with beside their steps (M6): an action that gives its parameters back, and one that fails. */
import type { Executor } from '../executor.ts';
import { failure } from '../failure.ts';

/** Returns its parameters, whatever they are called. */
export const collect: Executor = {
  execute: ({ parameters }) => Promise.resolve({ ok: true, output: parameters }),
};

/** Fails, by what its `message` says. */
export const refuse: Executor = {
  execute: ({ parameters }) => Promise.resolve(failure('invalid_items', String(parameters['message']))),
};
