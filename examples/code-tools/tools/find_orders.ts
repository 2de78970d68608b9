import { defineTool } from 'cortex-edge';
import { z } from 'zod';

export default defineTool({
  name: 'find_orders',
  description: 'Orders of a customer, newest first, with status and total.',
  parameters: z.object({
    customer: z.string().min(1).max(100),
    status: z.enum(['open', 'shipped']).optional().describe('Only orders with this status.'),
    limit: z.number().int().min(1).max(50).default(10),
  }),
  // A query has no effect, but its result changes: it may be repeated, not cached.
  effects: 'idempotent',
  example: { customer: 'ada', status: 'open' },
  async run({ customer, status, limit }, { env }) {
    const { results } = await env.SHOP.prepare(
      'SELECT id, status, total FROM orders WHERE customer = ? AND (? IS NULL OR status = ?) ORDER BY id DESC LIMIT ?',
    )
      .bind(customer, status ?? null, status ?? null, limit)
      .all<{ id: number; status: string; total: number }>();
    return { orders: results, count: results.length };
  },
});
