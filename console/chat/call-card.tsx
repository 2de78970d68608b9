/** An open call of a client tool: the reader is the client, and gives the result (C3). */
import { useState } from 'preact/hooks';
import type { CallResult, OpenCall } from '../../src/client/index.ts';
import { CodeField } from '../parts/fields.tsx';
import { memo } from '../parts/memo.ts';
import { Values } from '../parts/values.tsx';
import { AskCard } from './ask-card.tsx';
import { outputOf } from './tool-declarations.ts';

interface CallCardProps {
  readonly call: OpenCall;
  /** The stream says when the call is settled; then this card is gone. @throws CortexError, which the card shows */
  readonly settle: (result: CallResult) => Promise<void>;
}

export const CallCard = memo(function CallCard({ call: { name, parameters }, settle }: CallCardProps) {
  const [text, setText] = useState('');
  const { output } = outputOf(text);
  const message = text.trim() === '' ? 'The user could not execute the tool' : text;
  return (
    <AskCard
      title="Result needed"
      name={name}
      answers={[
        ['Send result', async () => await settle({ output })],
        ['Report failure', async () => await settle({ error: { message } })],
      ]}
    >
      <Values title="Parameters" values={parameters} />
      <CodeField label="Result (JSON or text)" value={text} set={setText} rows={3} />
      <p class="quiet">Sent as {output === null ? 'null' : typeof output === 'string' ? 'text' : 'JSON'}.</p>
    </AskCard>
  );
});
