/** The clerk, with replies that these tests write instead of a model, and stand-ins for the outside world. */
import { openSession, scripted } from 'cortex-edge/testing';
import 'cortex-edge/testing/vitest';
import { expect, test } from 'vitest';
import project from '../src/project.generated.ts';

test('looks orders up before it answers', async () => {
  const session = await openSession(project, {
    agent: 'clerk',
    model: scripted(
      '<action type="tool" mode="async" id="o" name="find_orders">{"customer": "ada"}</action>' +
        '<response final="true">Ada has $o.count orders.</response>',
    ),
    tools: { find_orders: async () => ({ orders: [], count: 2 }) },
  });
  const run = await session.send('How many orders has Ada?');
  expect(run).toHaveCalled('find_orders', { customer: 'ada' });
  expect(run).toHaveAnswered('Ada has 2 orders.');
});

test('tries a busy weather service again', async () => {
  const answers = [new Response('busy', { status: 503 }), Response.json({ temperature: 7, conditions: 'rain' })];
  const session = await openSession(project, {
    agent: 'clerk',
    model: scripted(
      '<action type="tool" mode="async" id="w" name="get_weather">{"city": "Rome"}</action>' +
        '<response final="true">$w.celsius degrees, $w.conditions</response>',
    ),
    fetch: () => answers.shift() ?? new Response('gone', { status: 500 }),
    allowHosts: ['weather.example:443'],
    secrets: { TOOL_WEATHER_KEY: 'a-key' },
  });
  const run = await session.send('How is the weather in Rome?');
  expect(run).toHaveAnswered('7 degrees, rain');
  expect(run.actions[0]?.attempts).toBe(2);
});

test('sends no e-mail before a person agrees', async () => {
  const sent: unknown[] = [];
  const session = await openSession(project, {
    agent: 'clerk',
    model: scripted(
      '<action type="tool" mode="async" id="m" name="send_email">' +
        '{"to": "ada@example.com", "subject": "Your order", "text": "It is on its way."}</action>' +
        '<response final="true">Sent.</response>',
    ),
    env: { EMAILS: { send: async (message: unknown) => void sent.push(message) } },
  });
  const waiting = await session.send('Write to Ada.');
  expect(waiting).toBeWaiting();
  expect(sent).toEqual([]);

  const run = await session.approve();
  expect(run).toHaveCompleted();
  expect(sent).toMatchObject([{ to: 'ada@example.com', subject: 'Your order' }]);
});

test('looks up two things at once', async () => {
  const session = await openSession(project, {
    agent: 'clerk',
    model: scripted(
      '<action type="tool" mode="async" id="o" name="find_orders">{"customer": "ada"}</action>' +
        '<action type="tool" mode="async" id="p" name="find_similar">{"text": "rain"}</action>' +
        '<response final="true">$o.count and $p</response>',
    ),
    tools: { find_orders: () => ({ count: 1 }), find_similar: () => [] },
  });
  expect(await session.send('Orders and products?')).toHaveRunInParallel('find_orders', 'find_similar');
});
