/** `calculator`: the value of an arithmetic expression; exact for whole numbers of any size (M3). */
import type { Executor } from '../executor.ts';
import { failure, wrongParameter } from '../failure.ts';
import { ArithmeticError, evaluate } from './arithmetic.ts';

export const calculator: Executor = {
  // oxlint-disable-next-line require-await -- the interface is asynchronous
  async execute({ parameters }) {
    const { expression } = parameters;
    if (typeof expression === 'number') return { ok: true, output: expression };
    if (typeof expression !== 'string')
      return wrongParameter('expression', 'an arithmetic expression as text', expression);
    try {
      return { ok: true, output: evaluate(expression) };
    } catch (fault) {
      if (fault instanceof ArithmeticError) return failure('invalid_expression', fault.message);
      throw fault;
    }
  },
};
