import { defineTool } from 'cortex-edge';
import { z } from 'zod';

export default defineTool({
  name: 'save_report',
  description: 'Saves a Markdown report, and returns the address that the team opens.',
  parameters: z.object({
    title: z.string().min(1).max(200),
    markdown: z.string().min(1).max(200_000),
  }),
  // The same call writes the same object again.
  effects: 'idempotent',
  async run({ title, markdown }, { env, idempotencyKey, artifacts, progress }) {
    const name = `${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.md`;
    const key = `reports/${idempotencyKey}/${name}`;
    progress({ message: `saving ${name}`, percent: 50 });
    await env.REPORTS.put(key, markdown, { httpMetadata: { contentType: 'text/markdown' } });
    artifacts.write(name, markdown, 'text/markdown');
    return { key, characters: markdown.length };
  },
});
