/** Mistakes in calls of code tools (K2). */
import type { Patch } from '../patch.ts';

export const CODE_TOOL_PATCHES: readonly Patch[] = [
  {
    name: 'a code tool whose host ended is not reported',
    file: 'src/executors/tool.ts',
    find: `if (type === 'code' && context.isSameHost !== true)`,
    replace: `if (type === 'code' && call.attempt > 1)`,
    invariant: 'reported tools',
  },
  {
    name: 'a code tool is reported before each call',
    file: 'src/executors/code.ts',
    find: `    return await codeTools.run(`,
    replace: `    await codeTools.lost(name);\n    return await codeTools.run(`,
    invariant: 'reported tools',
  },
  {
    name: 'a code tool parses its parameters when it runs, and not before they are judged',
    file: 'src/engine/actions/calls.ts',
    find: `return tool?.implementation.type === 'code' ? tool : null;`,
    replace: `return null;`,
    invariant: 'judged first',
  },
  {
    name: 'the parameters of a code tool are parsed a second time when it runs',
    file: 'src/executors/code.ts',
    find: `...(parsed === true ? { parsed } : {}),`,
    replace: `...(parsed === true && attempt > 1 ? { parsed } : {}),`,
    invariant: 'judged first',
  },
  {
    name: 'a code tool runs without what its schema has made of the parameters',
    file: 'src/engine/actions/calls.ts',
    find: `if (seq !== null) this.#judgedAt.set(key, seq);`,
    replace: `if (seq === null) this.#judgedAt.delete(key);`,
    invariant: 'judged first',
  },
  {
    name: 'defaults of a schema are filled in after the judgement',
    file: 'src/engine/policy/prepare-call.ts',
    find: `const call = completeCall(action, asked, resolved);`,
    replace: `void completeCall;\n  const call = asked;`,
    invariant: 'judged first',
  },
];
