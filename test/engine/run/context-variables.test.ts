/** Context variables in protocol text and in manifests (M5, P12, P14). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { resolveAgentVariables } from '../../../src/engine/session/resolve-agent-variables.ts';
import { SESSION_RECORD } from '../../journal/journal-kit.ts';
import { fakeRunner } from '../../executors/support.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const answer = (text: string): string => `<response final="true">${text}</response>`;

describe('[P12] protocol text', () => {
  test('knows them in parameters and answers', async () => {
    const kit = await sessionKit();
    const text = `<action type="tool" id="a">{"name":"echo","parameters":{"at":"$HOME/$AGENT_NAME","n":"$ITERATION_COUNT"}}</action>`;
    const result = await runText(kit, `${text}${answer('$a.at $a.n $DATE $TIME $TIMESTAMP ${YEAR}')}`);
    expect(result).toMatchObject({
      response: '/work/assistant 1 1970-01-01 00:16:40 1970-01-01T00:16:40.000Z 1970',
      warnings: [],
    });
  });

  test('results and variables of the same name win', async () => {
    const kit = await sessionKit({ variables: { DATE: 'mine' } });
    const text = '<action type="tool" id="TIME">{"name":"echo","parameters":{"v":1}}</action>';
    expect((await runText(kit, `${text}${answer('$DATE at $TIME.v')}`)).response).toBe('mine at 1');
  });

  test('keeps them in code of answers, and unknown names', async () => {
    const kit = await sessionKit();
    const code = 'use `cd $HOME` or\n```\necho $DATE\n```\nnot $CONFIDENCE, nor $HOME, but ${HOME}';
    expect((await runText(kit, answer(code))).response).toBe(code.replace('${HOME}', '/work'));
  });

  test('[P14] a command keeps its own; inputs may name them', async () => {
    const runner = fakeRunner({ stdout: 'ok' });
    const kit = await sessionKit({ runner, agent: (agent) => ({ ...agent, capabilities: ['python', 'shell'] }) });
    await runText(
      kit,
      '<action type="shell" id="s">{"command": "echo $HOME $DATE $TIMESTAMP"}</action>',
      '<action type="python" id="p">{"code": "x", "inputs": {"who": "$AGENT_NAME"}}</action>',
    );
    expect(runner.jobs.map(({ inputs }) => inputs)).toEqual([{}, { who: 'assistant' }]);
  });
});

describe('[M5] manifests', () => {
  const resolved = (persona: string, variables: Record<string, string>): string => {
    const found = bundled.agent('assistant');
    if (found === null) throw new Error('no assistant');
    const agent = { ...found.agent, variables, persona: { agent: persona, user: '', examples: [] } };
    return resolveAgentVariables({ ...found, agent }, { ...SESSION_RECORD, created_at: 0 }).agent.persona.agent;
  };

  test('their values may contain context variables, in both spellings', () => {
    expect(resolved('${WORK} ${LOG}', { WORK: '$HOME/$AGENT_NAME', LOG: '${TIMESTAMP} $$HOME $OTHER' })).toBe(
      '/work/assistant 1970-01-01T00:00:00.000Z $$HOME $OTHER',
    );
  });

  test('[L4] times are those of the session’s creation; a plain $NAME in a persona is text', () => {
    expect(resolved('${TIME} $TIME', {})).toBe('00:00:00 $TIME');
  });

  test('the agent’s own variables win', () => {
    expect(resolved('${HOME} ${TIME}', { HOME: '/srv', TIME: 'noon' })).toBe('/srv noon');
  });
});
