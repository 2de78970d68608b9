/** What a scroll box shows, and how large a root em is: what virtualised views are drawn for. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

export interface View {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Pixels of a root em: text may be enlarged. */
  readonly rem: number;
}

/** The part of the element that is visible; changes at most once per frame. */
export function useViewport(): { readonly box: RefObject<HTMLDivElement | null>; readonly view: View } {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<View>({ left: 0, top: 0, width: 0, height: 0, rem: 16 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let frame = 0;
    const read = (): void => {
      frame = 0;
      const { scrollLeft: left, scrollTop: top, clientWidth: width, clientHeight: height } = element;
      const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      setView({ left, top, width, height, rem });
    };
    const ask = (): void => {
      frame ||= requestAnimationFrame(read);
    };
    read();
    element.addEventListener('scroll', ask, { passive: true });
    // The heights of the boxes are set in root ems, so they also change with the size of the text.
    const observer = new ResizeObserver(ask);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', ask);
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  return { box, view };
}

/** The time of the server, again every `everyMs` while `isLive` and the page is visible. */
export function useNow(isLive: boolean, everyMs: number, lastAt: number): number {
  // A clock that is behind the server's is set by the newest event.
  const ahead = useRef(0);
  ahead.current = Math.max(ahead.current, isLive ? lastAt - Date.now() : 0);
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!isLive) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) setTick((tick) => tick + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [isLive, everyMs]);
  return isLive ? Date.now() + ahead.current : lastAt;
}
