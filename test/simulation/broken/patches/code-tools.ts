/** Mistakes in calls of code tools (K2). */
import type { Patch } from '../patch.ts';

export const CODE_TOOL_PATCHES: readonly Patch[] = [
  {
    name: 'a code tool whose host ended is not reported',
    file: 'src/executors/tool.ts',
    find: `if (type === 'code' && context.isSameHost !== true) await`,
    replace: `if (type === 'code' && call.attempt > 1) await`,
    invariant: 'reported tools',
  },
  {
    name: 'a code tool is reported before each call',
    file: 'src/executors/code.ts',
    find: `    return await codeTools.run(`,
    replace: `    await codeTools.lost(name);\n    return await codeTools.run(`,
    invariant: 'reported tools',
  },
];
