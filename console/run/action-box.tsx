/**
 * A scroll box with actions: what the graph and the timeline have in common.
 *
 * Invariants:
 *  1. One action is the tab stop. The keys move it, and the box draws it wherever it is.
 *  2. The box follows the newest action of a live run until the reader scrolls.
 */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { ComponentChildren, RefObject } from 'preact';
import type { RunViewProps } from './run-view.ts';
import type { TraceAction } from './trace-types.ts';
import type { View } from './viewport.ts';

/** Scrolling lays out the page, so new actions are followed only so often. */
const FOLLOW_MS = 100;
const ZOOM_STEP = 1.5;

interface ActionBoxProps extends RunViewProps {
  readonly title: string;
  /** One line about what is drawn. */
  readonly about: ComponentChildren;
  readonly box: RefObject<HTMLDivElement | null>;
  readonly view: View;
  /** Accessible names of the buttons that zoom. */
  readonly zoomOut: string;
  readonly zoomIn: string;
  readonly zoomBy: (factor: number) => void;
  readonly controls?: ComponentChildren;
  /** Pixels of the scrolled content that show an action. */
  readonly areaOf: (index: number) => Readonly<Record<'left' | 'top' | 'right' | 'bottom', number>>;
  /** The action that a key goes to from another one. */
  readonly move: (key: string, index: number) => number | undefined;
  /** The action at a point of the drawing, in pixels. */
  readonly actionAt: (x: number, y: number) => number | undefined;
  /** Actions in view. */
  readonly shown: readonly (TraceAction | undefined)[];
  /**
   * Draws actions: those in view, the tab stop and the selected one, in order. An element with `data-key` is an action; that
   * of the tab stop has `tabindex` 0.
   */
  readonly children: (
    drawn: readonly TraceAction[],
    stop: TraceAction | undefined,
    onClick: (event: MouseEvent & { currentTarget: Element }) => void,
  ) => ComponentChildren;
}

export function ActionBox({ trace, chosen, isLive, now, select, box, view, title, children, ...of }: ActionBoxProps) {
  const { actions } = trace;
  const [tabStop, setTabStop] = useState('');
  const [isFollowing, setFollowing] = useState(true);
  const stop = trace.action(tabStop) ?? chosen ?? actions[0];

  const reveal = (index: number): void => {
    const { left, top, right, bottom } = of.areaOf(index);
    const x = Math.min(left, Math.max(view.left, right - view.width));
    const y = Math.min(top, Math.max(view.top, bottom - view.height));
    if (Math.abs(x - view.left) >= 1 || Math.abs(y - view.top) >= 1) box.current?.scrollTo(x, y);
  };
  // Also when it was selected elsewhere, once the box has its size.
  useEffect(() => {
    if (chosen !== undefined && view.height > 0) reveal(chosen.index);
  }, [chosen?.key, view.height]);
  const newest = isLive && isFollowing ? actions.length : 0;
  useLayoutEffect(() => {
    if (newest > 0) reveal(newest - 1);
  }, [newest && Math.floor(now / FOLLOW_MS), view.height]);
  useLayoutEffect(() => {
    if (tabStop !== '') box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }, [tabStop]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (stop === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpening = event.key === 'Enter' || event.key === ' ';
    const next = isOpening ? stop : actions[of.move(event.key, stop.index) ?? -1];
    if (next === undefined) return;
    event.preventDefault();
    if (isOpening) select(next.key);
    setFollowing(false);
    setTabStop(next.key);
    reveal(next.index);
  };
  const onClick = ({ target, currentTarget, clientX, clientY }: MouseEvent & { currentTarget: Element }): void => {
    const { left, top } = currentTarget.getBoundingClientRect();
    const element = (target as Element).closest<HTMLElement>('[data-key]');
    const key = element?.dataset['key'] ?? actions[of.actionAt(clientX - left, clientY - top) ?? -1]?.key;
    if (key === undefined) return;
    setTabStop(key);
    select(key);
  };
  const stopFollowing = (): void => setFollowing(false);
  const drawn = [...new Set([...of.shown, stop, chosen])].filter((action) => action !== undefined);

  const button = (text: string, onClick: () => void, name = text) => (
    <button type="button" class="small" aria-label={name} onClick={onClick}>
      {text}
    </button>
  );
  return (
    <section aria-label={title} class={`run-${title.toLowerCase()}`}>
      <div class="part-head">
        <h3>{title}</h3>
        <p class="quiet grow">{of.about}</p>
        {isLive && !isFollowing && button('Follow', () => setFollowing(true))}
        <span class="row zoom">
          {button('−', () => of.zoomBy(1 / ZOOM_STEP), of.zoomOut)}
          {button('+', () => of.zoomBy(ZOOM_STEP), of.zoomIn)}
          {of.controls}
        </span>
      </div>
      <div
        class="part-box"
        ref={box}
        onWheel={stopFollowing}
        onPointerDown={stopFollowing}
        onTouchMove={stopFollowing}
        onKeyDown={onKeyDown}
      >
        {children(
          drawn.sort((a, b) => a.index - b.index),
          stop,
          onClick,
        )}
      </div>
    </section>
  );
}
