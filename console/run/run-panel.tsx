/** The run of a message: its graph and timeline, live or at an earlier moment, and what else it did. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { access } from '../app/access.ts';
import { fromHere, href, setQuery } from '../app/router.ts';
import { focusMain } from '../parts/main-focus.ts';
import { useTask } from '../parts/task.tsx';
import type { RunModel } from '../session/run-model.ts';
import type { SessionModel } from '../session/session-model.ts';
import { boundOf } from './bound.ts';
import { Details } from './details.tsx';
import { Graph } from './graph.tsx';
import { Log } from './log.tsx';
import { Prompt } from './prompt.tsx';
import { positionOf, Replay } from './replay.ts';
import { RunHead } from './run-head.tsx';
import { Feeds, Tokens, Warnings } from './run-tables.tsx';
import { Scrubber } from './scrubber.tsx';
import type { ShowMoment } from './scrubber.tsx';
import { Timeline } from './timeline.tsx';
import { useNow } from './viewport.ts';

interface RunPanelProps {
  readonly session: SessionModel;
  readonly run: RunModel;
  /** Of the route: `tab`, `action` (`iteration.id`), `at` (seq of the last event that is shown). */
  readonly query: Readonly<Record<string, string>>;
}

const TABS = { log: 'Log', tokens: 'Tokens', warnings: 'Warnings', feeds: 'Feeds', prompt: 'Prompt' };
type Tab = keyof typeof TABS;

/** At most 15 frames a second, while bars grow. */
const FRAME_MS = 67;
/** While the run waits, possibly for days. */
const WAIT_FRAME_MS = 1_000;
/** Browsers limit how often the address may change. */
const ADDRESS_MS = 400;
/** An event that is older is not from a run that goes on. */
const FRESH_MS = 5_000;

export function RunPanel({ session, run, query }: RunPanelProps) {
  const version = run.version.value;
  const { events } = run;
  const isView = access.value.mode === 'view';
  const [at, sinceMs, show] = useMoment(query.at);
  const replay = useMemo(() => new Replay(events), [run]);
  const isRunning = useIsRunning(session, run);
  const isLive = isRunning && at === null;
  const isLoading = !run.isWhole && !session.isActive(run.id);
  const trace = at === null ? run.trace : replay.at(at);
  const now = useNow(isLive, trace.status === 'waiting' ? WAIT_FRAME_MS : FRAME_MS, trace.lastAt) + sinceMs;
  const bound = useMemo(() => boundOf(trace, now), [trace, trace.revision, version, now]);
  const chosen = trace.action(query.action ?? '');
  const [select, panel] = useSelection(chosen !== undefined);
  const tabs = (Object.keys(TABS) as Tab[]).slice(0, isView ? 3 : undefined);
  const tab = tabs.find((each) => each === query.tab);
  const { startedAt, lastAt } = run.trace;
  const spanMs = Math.max(lastAt, isLive ? now : 0) - (startedAt ?? lastAt);
  const position = at === null ? Math.max(0, events.length - 1) : positionOf(events, at);
  const canBranch = !isView;
  const { isBusy, fault, run: runTask } = useTask();
  /** Begins something, and shows it. */
  const start = async (begin: () => Promise<readonly string[]>): Promise<void> =>
    await runTask(async () => {
      const goOn = fromHere();
      goOn(href(await begin()));
    });
  const view = { trace, bound, now, isLive, isLoading, chosen, select };

  return (
    <div class="run" ref={panel}>
      <RunHead trace={trace} bound={bound}>
        {canBranch && run.hasEnded && (
          <button
            type="button"
            class="small"
            aria-disabled={isBusy}
            onClick={() => void start(async () => ['sessions', (await session.session.fork({ atRun: run.id })).id])}
          >
            Fork from here
          </button>
        )}
        {fault}
      </RunHead>
      {events.length > 1 && (
        <Scrubber events={events} position={position} isAtEnd={at === null} isLive={isRunning} show={show} />
      )}
      <div class={chosen === undefined ? 'run-body' : 'run-body with-details'}>
        <div class="run-main">
          <Graph {...view} />
          <Timeline {...view} spanMs={spanMs} />
        </div>
        {chosen !== undefined && (
          <Details {...view} action={chosen} linksSessions={!isView}>
            {canBranch && run.hasEnded && (
              <button
                type="button"
                class="small"
                aria-disabled={isBusy}
                onClick={() =>
                  void start(async () => ['sessions', session.id, 'runs', await session.rerun(run.id, chosen.id)])
                }
              >
                Run again
              </button>
            )}
          </Details>
        )}
      </div>
      <div class="run-tabs" role="tablist" aria-label="More about the run" onKeyDown={moveTab}>
        {tabs.map((each) => (
          <button
            key={each}
            type="button"
            class="plain small"
            role="tab"
            id={`tab-${each}`}
            aria-selected={each === tab}
            aria-controls={each === tab ? 'run-tab' : undefined}
            tabIndex={each === (tab ?? tabs[0]) ? 0 : -1}
            onClick={() => setQuery({ tab: each === tab ? undefined : each })}
          >
            {TABS[each]}
            {each === 'warnings' && trace.warnings.length > 0 && <span class="tag">{trace.warnings.length}</span>}
          </button>
        ))}
      </div>
      {tab !== undefined && (
        // oxlint-disable-next-line
        <div class="run-tab" id="run-tab" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
          {tab === 'log' && <Log events={events.slice(0, position + 1)} select={select} show={show} />}
          {tab === 'feeds' && <Feeds trace={trace} />}
          {tab === 'tokens' && <Tokens trace={trace} />}
          {tab === 'prompt' && <Prompt session={session} runId={run.id} iterations={trace.iterations.length} />}
          {tab === 'warnings' && <Warnings trace={trace} />}
        </div>
      )}
    </div>
  );
}

/** Left and right move between tabs. */
function moveTab({ key, target, currentTarget }: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const tabs = [...currentTarget.children] as HTMLElement[];
  if (step !== undefined) tabs.at((tabs.indexOf(target as HTMLElement) + step) % tabs.length)?.focus();
}

/** Whether the run goes on now. While its past events are loaded, it only seems to. */
function useIsRunning(session: SessionModel, run: RunModel): boolean {
  // Subscribes.
  void session.messages.value;
  if (run.hasEnded) return false;
  return (session.isActive(run.id) && run.started !== null) || Date.now() - run.trace.lastAt < FRESH_MS;
}

/**
 * The moment of the address: changes at once, and in the address when it has stayed for a moment.
 *
 * @returns the event, the milliseconds since it happened, and how to show another moment
 */
function useMoment(query: string | undefined): [at: number | null, sinceMs: number, show: ShowMoment] {
  const [moved, setMoved] = useState<{ query?: string | undefined; at: number | null; sinceMs: number }>();
  const known = Number(query) > 0 ? Number(query) : null;
  // After the address has changed, it counts: it has followed, or the reader has followed a link.
  useEffect(() => setMoved((last) => (last?.at === known ? { ...last, query } : undefined)), [query]);
  const at = moved !== undefined && moved.query === query ? moved.at : known;
  useEffect(() => {
    if (at === known) return undefined;
    const timer = setTimeout(() => setQuery({ at: at === null ? undefined : String(at) }), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [at, known]);
  const show: ShowMoment = (next, sinceMs = 0) => setMoved({ query, at: next, sinceMs: next === null ? 0 : sinceMs });
  return [at, moved?.at === at ? moved.sinceMs : 0, show];
}

/** Selects an action in the address. When it is closed, the focus goes back to where it was opened. */
function useSelection(isOpen: boolean) {
  const panel = useRef<HTMLDivElement>(null);
  // Another run takes the place of the one whose button was used.
  useLayoutEffect(
    () => () => {
      if (panel.current?.contains(document.activeElement) === true) focusMain();
    },
    [],
  );
  const origin = useRef<HTMLElement | null>(null);
  const select = (key: string | null): void => {
    const element = document.activeElement?.closest<HTMLElement>('.run *') ?? null;
    if (key !== null && element?.closest('.details') == null) origin.current = element;
    setQuery({ action: key ?? undefined });
    if (key !== null) return;
    requestAnimationFrame(() => {
      const isThere = origin.current?.isConnected === true;
      (isThere ? origin.current : panel.current?.querySelector<HTMLElement>('.part-box [tabindex="0"]'))?.focus();
    });
  };
  // A layout effect, because the next key may come before the next frame.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const close = ({ key, defaultPrevented, target }: KeyboardEvent): void => {
      const isHere = target === document.body || panel.current?.contains(target as Node) === true;
      if (key === 'Escape' && isHere && !defaultPrevented && document.querySelector('dialog[open]') === null)
        select(null);
    };
    addEventListener('keydown', close);
    return () => removeEventListener('keydown', close);
  }, [isOpen]);
  return [select, panel] as const;
}
