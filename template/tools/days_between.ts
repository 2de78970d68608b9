import { defineTool } from 'cortex-edge';
import { z } from 'zod';

const MS_PER_DAY = 86_400_000;

export default defineTool({
  name: 'days_between',
  description: 'The number of days from one date to another.',
  parameters: z.object({
    from: z.iso.date().describe('YYYY-MM-DD'),
    to: z.iso.date().describe('YYYY-MM-DD'),
  }),
  effects: 'pure',
  example: { from: '2026-01-01', to: '2026-12-24' },
  run: ({ from, to }) => ({ days: (Date.parse(to) - Date.parse(from)) / MS_PER_DAY }),
});
