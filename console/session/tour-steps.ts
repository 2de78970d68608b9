/** The guided tour: three messages that show what is different here. The demo model understands them, as others do. */
import type { SessionEvent } from '../../src/client/index.ts';

export interface TourStep {
  /** In the metadata of the session, so that a reload and a link keep the step. */
  readonly id: string;
  readonly title: string;
  readonly agent: string;
  readonly message: string;
  /** What it shows, before one starts it. */
  readonly about: string;
  /** Where to look while it runs. */
  readonly watch: string;
}

export const TOUR: readonly TourStep[] = [
  {
    id: 'parallel',
    title: 'Parallel work',
    agent: 'assistant',
    message: 'compute 2**200 in python, list the files in shell and wait 2 seconds at the same time',
    about: 'Three actions start while the model is still writing its answer.',
    watch:
      'In the timeline, the bars of the actions begin under the bar of the model: nothing waits until it has finished.',
  },
  {
    id: 'dependency',
    title: 'A dependency, one generation',
    agent: 'assistant',
    message: 'compute 2**200 in python and list the files in shell at the same time, then sum it up',
    about: 'The plan, the calls and the answer in one call of the model.',
    watch:
      'In the graph, the summary waits for two results. The model has written the answer before they existed: it refers to them by name.',
  },
  {
    id: 'approval',
    title: 'Approval',
    agent: 'careful_assistant',
    message: 'what is the 50th fibonacci number, in python',
    about: 'An action waits for you, without holding anything up.',
    watch: 'Read what would run, then approve or deny it. A reload, or a crash of the server, loses nothing.',
  },
];

/** What a finished run has shown, in figures. Empty for a run without actions. */
export function tourFacts(events: readonly SessionEvent[]): string[] {
  const speakingUntil = new Map<number, number>();
  for (const { type, iteration, timestamp } of events) if (SPOKEN.has(type)) speakingUntil.set(iteration, timestamp);
  const started = events.filter((event) => event.type === 'action_started' && event.data.attempt === 1);
  const early = started.filter(({ iteration, timestamp }) => timestamp < (speakingUntil.get(iteration) ?? 0)).length;
  const generations = events.filter(({ type }) => type === 'iteration_started').length;
  const approvals = events.filter(({ type }) => type === 'approval_resolved').length;
  if (started.length === 0) return [];
  return [
    ...(early === 0 ? [] : [`${early} of ${started.length} actions started before the model had finished.`]),
    `The model was called ${generations === 1 ? 'once' : `${generations} times`}.`,
    ...(approvals === 0 ? [] : ['The action ran after your approval, exactly as it was shown to you.']),
  ];
}

const SPOKEN: ReadonlySet<string> = new Set(['thought_completed', 'text_completed', 'response_completed', 'usage']);
