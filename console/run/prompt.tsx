/** What a run sent to the model. The server shows it to administrators only. */
import { CortexError } from '../../src/client/index.ts';
import { List } from '../parts/bounded.tsx';
import { count, plural } from '../parts/format.ts';
import { JsonView, TextView } from '../parts/json-view.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import type { SessionModel } from '../session/session-model.ts';

interface PromptProps {
  readonly session: SessionModel;
  readonly runId: string;
  /** It is loaded again when there is a further generation. */
  readonly iterations: number;
}

export function Prompt({ session, runId, iterations }: PromptProps) {
  const load = useLoad(async () => await session.session.run(runId).prompt(), [session, runId, iterations]);
  if (load.fault instanceof CortexError && load.fault.code === 'forbidden') {
    return <p class="note">The prompt is shown to keys with the role admin only.</p>;
  }
  return (
    <Loaded load={load}>
      {({ generations, dropped }) => (
        <>
          {dropped > 0 && <p class="quiet">{plural(dropped, 'earlier prompt')} were deleted to save space.</p>}
          {generations.length === 0 && <p class="quiet">This run has not called a model.</p>}
          {generations.map(({ iteration, model, tokens, tools = [], messages }, index) => (
            <details key={iteration} open={index === generations.length - 1}>
              <summary>
                Iteration {iteration}: {model}, about {count(tokens)} tokens, {plural(messages.length, 'message')}
              </summary>
              {tools.length > 0 && <p class="quiet">Functions: {tools.join(', ')}</p>}
              <List items={messages}>
                {({ role, content, attachments = [], tool_calls: calls }, place) => (
                  <li key={place}>
                    <h4>{role}</h4>
                    {content !== '' && <TextView text={content} label={`${role}, message ${place + 1}`} />}
                    {calls !== undefined && <JsonView value={calls} label="Calls" />}
                    {attachments.map(({ name }) => (
                      <span key={name} class="tag">
                        {name}
                      </span>
                    ))}
                  </li>
                )}
              </List>
            </details>
          ))}
        </>
      )}
    </Loaded>
  );
}
