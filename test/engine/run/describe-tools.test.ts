/** Runs of an agent whose tools do not fit in the prompt (L4). */
import { describe, expect, test } from 'vitest';
import type { AgentDefinition, ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import { largeTool, largeTools } from '../../support/many-tools.ts';
import { say, sessionKit } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const DESCRIBE =
  '<action type="internal" name="describe_tools" id="d" mode="async">{"names":["thing_7","thing_8"]}</action>';
const GOOD = '<action name="thing_7" id="t" mode="async">{"parameter_0":"x"}</action>';
const WRONG = '<action name="thing_7" id="t" mode="async">{"parameter_1":5}</action>';
const END = '<response final="true">done</response>';

const kitWith = async (options: KitOptions, protocol: Partial<ProtocolOptions> = {}): Promise<SessionKit> =>
  await sessionKit({
    tools: largeTools(300),
    ...options,
    agent: (agent: AgentDefinition) => ({ ...agent, protocol: { ...agent.protocol, ...protocol } }),
  });
const lastOf = ({ requests }: SessionKit, at: number): string => requests[at]?.messages.at(-1)?.content ?? '';

describe('[L4] a run of an agent with tools in short form', () => {
  test('describes tools, and calls one of them in the next generation', async () => {
    const kit = await kitWith({ script: [DESCRIBE, GOOD, END] });
    const result = await say(kit, 'do it');
    expect(result).toMatchObject({ status: 'completed', response: 'done', iterations: 3, warnings: [] });
    expect(result.actions).toMatchObject([
      { id: 'd', status: 'completed', output: { tools: [{ name: 'thing_7' }, { name: 'thing_8' }] } },
      { id: 't', status: 'completed', output: { parameter_0: 'x' } },
    ]);
    expect(kit.requests[0]?.messages[0]?.content).toMatch(/^- thing_7: .*$/m);
    expect(kit.requests[0]?.messages[0]?.content).not.toContain('- parameter_0');
    expect(lastOf(kit, 1)).toContain('- parameter_0 (string');
    expect(kit.requests[2]?.messages[0]).toEqual(kit.requests[0]?.messages[0]);
    expect(kit.faults).toEqual([]);
  });

  test('a wrong call of a tool that was not described fails with the lines of its parameters', async () => {
    const kit = await kitWith({ script: [WRONG, GOOD.replace('id="t"', 'id="u"'), END] });
    const result = await say(kit, 'do it');
    expect(result.actions).toMatchObject([
      { id: 't', status: 'failed', error: { code: 'invalid_parameters' } },
      { id: 'u', status: 'completed' },
    ]);
    expect(lastOf(kit, 1)).toMatch(
      /parameters\.parameter_1: expected string.*\nIts parameters:\n- parameter_0 \(string/s,
    );
  });

  test('of an agent whose tools are all shown, describe_tools is not allowed', async () => {
    const kit = await kitWith({ tools: [], script: [DESCRIBE, END] });
    expect((await say(kit, 'describe')).actions).toMatchObject([{ error: { code: 'not_allowed' } }]);
  });

  test('the lines in a failure are bounded, and a tool that is shown in full has none', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, at) => [`parameter_${at}`, { type: 'string' }]),
    );
    const huge = largeTool(7, { parameters: { type: 'object', properties } });
    const kit = await kitWith({ tools: [huge], script: [WRONG, END] });
    await say(kit, 'do it');
    expect(lastOf(kit, 1)).toMatch(/\[\d+ more lines are left out for length\]/);
    expect(lastOf(kit, 1).length).toBeLessThan(4_000);
    const whole = await kitWith({ tools: [largeTool(7)], script: [WRONG, END] });
    await say(whole, 'do it');
    expect(lastOf(whole, 1)).toContain('expected string');
    expect(lastOf(whole, 1)).not.toContain('Its parameters');
  });
});
