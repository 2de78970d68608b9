/** The project's code tools, run in the process of the test. This is where they are plugged into its sessions (K2). */
import type { ActionOutcome } from '../src/domain/action.ts';
import type { CodeTools, CodeToolSession } from '../src/domain/ports/code-tools.ts';
import type { OutboundFetch } from '../src/domain/ports/outbound.ts';
import { callTool, parseCall } from '../src/code-tools/call-tool.ts';
import type { ToolHost } from '../src/code-tools/call-tool.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface CodeToolPorts extends Omit<ToolHost, 'advice'> {
  readonly session: CodeToolSession;
  readonly fetch: OutboundFetch;
  readonly time: VirtualTime;
}

const ADVICE: ToolHost['advice'] = {
  tool: 'run cortex build',
  binding: (name) => `pass env: { ${name}: … } to openSession`,
};

export function testCodeTools({ session, fetch, time, ...host }: CodeToolPorts): CodeTools {
  return {
    parse: (call, signal): Promise<ActionOutcome> =>
      time.hold(`the code tool "${call.name}"`, signal, () => parseCall(call, { ...host, advice: ADVICE }, signal)),
    run: (call, { signal, progress }): Promise<ActionOutcome> =>
      time.hold(`the code tool "${call.name}"`, signal, () =>
        callTool(call, { ...host, advice: ADVICE }, session, { signal, fetch, progress }),
      ),
    lost: async () => undefined,
  };
}
