import { defineTool } from 'cortex-edge';
import { z } from 'zod';

export default defineTool({
  name: 'send_email',
  description: 'Sends an e-mail to a customer. It is delivered within a minute.',
  parameters: z.object({
    to: z.email(),
    subject: z.string().min(1).max(200),
    text: z.string().min(1).max(20_000),
  }),
  // The consumer of the queue drops messages whose id it has seen.
  effects: 'idempotent',
  async run({ to, subject, text }, { env, idempotencyKey }) {
    await env.EMAILS.send({ id: idempotencyKey, to, subject, text });
    return { queued: true, id: idempotencyKey };
  },
});
