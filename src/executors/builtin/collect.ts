/** Internal actions of workflows (M6): one returns its parameters, one a single value, and one fails. */
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';

/** Returns its parameters, whatever their names. */
export const collect: Executor = {
  execute: ({ parameters }) => Promise.resolve({ ok: true, output: parameters }),
};

/** Returns its parameter `value`. */
export const valueOf: Executor = {
  execute: ({ parameters }) => Promise.resolve({ ok: true, output: parameters['value'] ?? null }),
};

/** Fails with the message in `message`. */
export const refuse: Executor = {
  execute: ({ parameters }) =>
    Promise.resolve(
      failure(parameters['code'] === 'step_failed' ? 'step_failed' : 'invalid_items', String(parameters['message'])),
    ),
};
