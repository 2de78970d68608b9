import { defineTool } from 'cortex-edge';
import { z } from 'zod';
import { embed } from './lib/embed.ts';

export default defineTool({
  name: 'find_similar',
  description: 'Products whose descriptions are similar to a text, best first.',
  parameters: z.object({
    text: z.string().min(1).max(1_000),
    count: z.number().int().min(1).max(20).default(3),
  }),
  effects: 'idempotent',
  async run({ text, count }, { env }) {
    const { matches } = await env.PRODUCTS.query(embed(text), { topK: count });
    return matches.map(({ id, score, metadata }) => ({
      id,
      name: metadata?.['name'],
      score: Number(score.toFixed(3)),
    }));
  },
});
