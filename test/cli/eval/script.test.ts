/** Scripts as models of evaluations: a reply depends on what the runtime has sent (O3). */
import { expect, test } from 'vitest';
import { readScript, scriptedTexts } from '../../../cli/scripted-llm/script.ts';

const SCRIPT = `
replies:
  - when: { contains: [6 * 7, please], prompt: 'type="python"' }
    text: python
  - when: { contains: 6 * 7, prompt: "## calculator" }
    text: calculator
  - when: { contains: '<result "a">' }
    text: result
  - when: { contains: fail }
    status: 500
  - text: none
`;
const system = (content: string) => ({ role: 'system', content });
const user = (content: string) => ({ role: 'user', content });

test.each([
  [[system('## calculator'), user('6 * 7')], 'calculator'],
  [[system('## calculator, type="python"'), user('6 * 7, please')], 'python'],
  [[system('## calculator'), user('6 * 7, please')], 'calculator'],
  [[system('## other'), user('6 * 7')], 'none'],
  [[user('6 * 7')], 'none'],
  [[system('## calculator'), user('6 * 7'), user('other')], 'none'],
  [[user('the <result "a"> is')], 'result'],
])('[O3] %j: %s', (messages, reply) => {
  expect(scriptedTexts(SCRIPT)(messages)).toBe(reply);
});

test('[O3] in process, a reply without a text is an error; over HTTP it is an answer', () => {
  expect(() => scriptedTexts(SCRIPT)([user('fail')])).toThrow('no reply of the script has a text: fail');
  const answer = readScript(SCRIPT)({
    path: '/',
    headers: {},
    body: { messages: [user('fail')] },
    left: Promise.resolve(),
  });
  expect(answer).toMatchObject({ status: 500 });
});
