/** `calculator`: evaluates an arithmetic expression; exact for integers of any size (M3). */
import { limits } from '../../domain/limits.ts';
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { wrongParameter } from '../failure.ts';
import { ArithmeticError } from './arithmetic-values.ts';
import { evaluate } from './arithmetic.ts';

export const calculator: Executor = {
  async execute({ parameters }, { pacer, signal }) {
    const { expression } = parameters;
    if (typeof expression === 'number') return { ok: true, output: expression };
    if (typeof expression !== 'string')
      return wrongParameter('expression', 'an arithmetic expression as a string', expression);
    try {
      const output = await pacer.run(limits.calculatorSteps, (meter) => evaluate(expression, meter), signal);
      return { ok: true, output };
    } catch (fault) {
      if (fault instanceof ArithmeticError) return failure('invalid_expression', fault.message);
      throw fault;
    }
  },
};
