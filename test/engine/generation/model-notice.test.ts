/** A run says once that another model answers than its manifest names (L3). */
import { expect, test } from 'vitest';
import { runText, say, sessionKit } from '../../support/session-kit.ts';

const ACTION = '<action type="llm" id="a">{"prompt": "hi"}</action>';
const warning = { code: 'model_not_configured', message: 'the demo answers' };

test('[L3] a run with several generations has one warning', async () => {
  const kit = await sessionKit({
    modelNotice: warning.message,
    script: [
      '<action type="tool" id="x">{"name":"echo","parameters":{}}</action>',
      '<response final="true">ok</response>',
    ],
  });
  expect((await say(kit, 'hi')).warnings).toEqual([warning]);
});

test('[L3] posted text has it if it calls the model', async () => {
  const kit = await sessionKit({ modelNotice: warning.message, script: ['one', 'two'] });
  expect((await runText(kit, `${ACTION}${ACTION.replace('"a"', '"b"')}`)).warnings).toEqual([warning]);
  expect((await runText(kit, '<response final="true">ok</response>')).warnings).toEqual([]);
});
