/** Internal actions of workflows in addition to their steps (M6): one returns its parameters, one fails. */
import type { Executor } from '../executor.ts';
import { failure } from '../failure.ts';

/** Returns its parameters, whatever their names. */
export const collect: Executor = {
  execute: ({ parameters }) => Promise.resolve({ ok: true, output: parameters }),
};

/** Fails with the message in `message`. */
export const refuse: Executor = {
  execute: ({ parameters }) => Promise.resolve(failure('invalid_items', String(parameters['message']))),
};
