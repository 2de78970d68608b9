/** The five tools of examples/code-tools, in workerd with a real D1 database, bucket and queue (K2). */
import { applyD1Migrations } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeAll, describe, expect, test } from 'vitest';
import schema from '../../examples/code-tools/migrations/0001_shop.sql?raw';
import { call, execute, post } from '../runtime/client.ts';

const { SHOP, REPORTS } = env as unknown as { readonly SHOP: D1Database; readonly REPORTS: R2Bucket };

beforeAll(async () => {
  const queries = schema.split(';').map((query) => query.trim());
  await applyD1Migrations(SHOP, [{ name: '0001_shop.sql', queries: queries.filter((query) => query !== '') }]);
});

const action = (name: string, parameters: object): string =>
  `<action type="tool" mode="async" id="a" name="${name}">${JSON.stringify(parameters)}</action>`;

async function output(name: string, parameters: object): Promise<unknown> {
  const run = await execute(`${action(name, parameters)}<response final="true">done</response>`, { agent: 'clerk' });
  const [first] = run.actions;
  return first?.status === 'completed' ? first.output : first;
}

describe('[K2] the example', () => {
  test('find_orders queries D1', async () => {
    expect(await output('find_orders', { customer: 'ada' })).toEqual({
      orders: [
        { id: 2, status: 'open', total: 9 },
        { id: 1, status: 'shipped', total: 20.5 },
      ],
      count: 2,
    });
    expect(await output('find_orders', { customer: "x' OR 1=1 --" })).toEqual({ orders: [], count: 0 });
    expect(await output('find_orders', { customer: 'ada', status: 'lost' })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_parameters' },
    });
  });

  test('save_report writes to R2, and an artifact', async () => {
    const saved = (await output('save_report', { title: 'Week 7', markdown: '# Good' })) as { key: string };
    expect(saved.key).toMatch(/^reports\/ses_.*\/week-7\.md$/);
    expect(await (await REPORTS.get(saved.key))?.text()).toBe('# Good');
  });

  test('get_weather sends its secret, and tries again only what may succeed later', async () => {
    expect(await output('get_weather', { city: 'Rome' })).toEqual({ city: 'Rome', celsius: 7.5, conditions: 'rain' });
    expect(await output('get_weather', { city: 'Busytown' })).toMatchObject({ city: 'Busytown' });
    expect(await output('get_weather', { city: 'Atlantis' })).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'unknown_city', message: 'No weather is known for "Atlantis"' },
    });
  });

  test('send_email asks a person, then puts one message into the queue', async () => {
    const text = `${action('send_email', { to: 'ada@example.com', subject: 'Hi', text: 'Hello' })}<response final="true">$a.id</response>`;
    const begun = await post('/execute/direct', { protocol_text: text, agent: 'clerk', stream: false });
    const waiting = await begun.json<{ session_id: string; run_id: string; status: string }>();
    expect(waiting.status).toBe('waiting');
    const session = `/agent/session/${waiting.session_id}`;
    const { approvals } = await (await call(`${session}/approvals`)).json<{ approvals: { approval_id: string }[] }>();
    await post(`${session}/approvals/${approvals[0]?.approval_id ?? ''}`, { approve: true });
    await expect
      .poll(async () => (await (await call(`${session}/runs/${waiting.run_id}`)).json<{ status: string }>()).status)
      .toBe('completed');
    const run = await (await call(`${session}/runs/${waiting.run_id}`)).json();
    expect(run).toMatchObject({ actions: [{ status: 'completed', output: { queued: true } }] });
  });

  test('find_similar searches vectors', async () => {
    expect(await output('find_similar', { text: 'something for wet days', count: 2 })).toMatchObject([
      { name: expect.stringMatching(/Rain jacket|Umbrella/) },
      { name: expect.stringMatching(/Rain jacket|Umbrella/) },
    ]);
  });

  test('the prompt has the schemas of the code', async () => {
    const prompt = await (await call('/agents/clerk/prompt')).text();
    expect(prompt).toContain('find_orders');
    expect(prompt).toContain('Orders of a customer, newest first');
    expect(prompt).toContain('customer');
  });
});
