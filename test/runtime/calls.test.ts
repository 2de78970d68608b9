/** Calls in the forms of other systems, run in the real Worker (P6). */
import { expect, test } from 'vitest';
import { call, execute } from './client.ts';

const FILES = {
  'agents/desk.yaml': `kind: Agent
version: "1"
name: desk
summary: Answers and keeps notes.
persona: You keep notes.
import: { agents: [researcher], tools: [stamp], relics: [pages] }
`,
  'tools/stamp.yaml': `kind: Tool
version: "1"
name: stamp
summary: Returns its parameters.
effects: pure
implementation: { type: builtin, entrypoint: echo }
parameters: { word: { type: string, required: false }, times: { type: number, required: false } }
`,
  'relics/pages.yaml': `kind: Relic
version: "1"
name: pages
summary: Pages by name.
implementation: { type: edge, store: kv }
`,
};

/** The ids of the actions with their status or error, their outputs, and the messages of `foreign_form`. */
async function run(
  text: string,
): Promise<[status: Record<string, string>, output: Record<string, unknown>, notes: string[]]> {
  const uploaded = await call('/manifests', { method: 'PUT', body: JSON.stringify({ files: FILES }) });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
  const { actions, warnings } = await execute(`${text}\n<response final="true">Done.</response>`, { agent: 'desk' });
  const notes = warnings.filter(({ code }) => code === 'foreign_form').map(({ message }) => message);
  return [
    Object.fromEntries(actions.map(({ id, status, error }) => [id, error?.code ?? status])),
    Object.fromEntries(actions.map(({ id, output }) => [id, output])),
    notes,
  ];
}

test('[P6] a sub-agent takes plain text, named values and delegate_to_agent', async () => {
  const [status, output, notes] = await run(`
<action type="agent" name="researcher" id="plain" mode="async">calculate 2*21</action>
<action type="agent" name="researcher" id="named" mode="async">{"instruction": "calculate 2*22"}</action>
<action mode="async" id="sent">{"name": "delegate_to_agent", "parameters": {"agent": "researcher", "prompt": "calculate 2*23"}}</action>
<action type="agent" name="researcher" id="nobody"/>`);
  expect(status).toEqual({ plain: 'completed', named: 'completed', sent: 'completed', nobody: 'invalid_action' });
  expect([output['plain'], output['named'], output['sent']].map(String)).toEqual([
    expect.stringContaining('42'),
    expect.stringContaining('44'),
    expect.stringContaining('46'),
  ]);
  expect(notes).toHaveLength(3);
});

test('[P6] a model gets named values with their references, as JSON', async () => {
  const [status, output, notes] = await run(`
<action name="stamp" id="facts">{"word": "rain"}</action>
<action type="llm" id="sum">{"name": "summarise", "parameters": {"facts": "$facts", "words": 5}, "depends_on": ["facts"]}</action>
<action type="llm" id="say">Say hello</action>`);
  expect(status).toEqual({ facts: 'completed', sum: 'completed', say: 'completed' });
  expect(String(output['say'])).not.toBe('');
  expect(notes).toEqual([
    'llm "sum": it has no "prompt": all values together, as compact JSON, are its prompt',
    'llm "say": the body is plain text: it is the prompt',
  ]);
});

test('[P6] a relic call names its endpoint by operation or action, or not at all', async () => {
  const [status, output, notes] = await run(`
<action type="relic" id="set">{"name": "pages", "parameters": {"operation": "set", "key": "a", "value": "tea"}}</action>
<action type="relic" id="add">{"name": "pages", "parameters": {"key": "b", "value": "milk"}}</action>
<action type="relic" name="pages" id="get" action="get" key="a"/>
<action type="relic" name="pages" id="first">{"key": "b"}</action>
<action type="relic" id="typo">{"name": "pages", "parameters": {"operation": "gett", "key": "a"}}</action>`);
  expect(status).toEqual({
    set: 'completed',
    add: 'completed',
    get: 'completed',
    first: 'completed',
    typo: 'unknown_name',
  });
  expect([output['get'], output['first']]).toEqual(['tea', 'milk']);
  expect(notes).toEqual([
    'relic "set": "operation" names its endpoint',
    'relic "add": it names no endpoint: "set" is called',
    'relic "get": "action" names its endpoint',
    'relic "first": it names no endpoint: "get" is called',
  ]);
});

test('[P5] [P6] a tool takes its name from "tool", its parameters from attributes, and its full body after an empty one', async () => {
  const [status, output, notes] = await run(`
<action id="named">{"tool": "stamp", "parameters": {"word": "a"}}</action>
<action name="stamp" id="tagged" word="7" times="2" colour="red"/>
<action name="echo" id="unknown">{}</action>
<action name="stamp" id="late" depends_on="tagged"/>
<action name="stamp" id="late" depends_on="tagged">{"word": "full"}</action>`);
  expect(status).toEqual({ named: 'completed', tagged: 'completed', unknown: 'unknown_name', late: 'completed' });
  expect(output).toMatchObject({ named: { word: 'a' }, tagged: { word: '7', times: 2 }, late: { word: 'full' } });
  expect(notes).toEqual(['tool "named": "tool" is its name']);
});
