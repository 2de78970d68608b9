/** Keeps the newest content in view, unless the reader has scrolled up. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

/** So far from the end, the reader is still at the end. */
const NEAR_PX = 48;

export interface Follow {
  readonly isAtEnd: boolean;
  readonly toEnd: () => void;
  /** Content will be added at the beginning: what is shown stays where it is … */
  readonly hold: () => void;
  /** … when it has been added. */
  readonly release: () => void;
}

export function useFollow(scroller: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>): Follow {
  const [isAtEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  /** Distance from the end that stays the same; null: nothing is added at the beginning. */
  const kept = useRef<number | null>(null);

  const toEnd = (): void => {
    follows.current = true;
    setAtEnd(true);
    scroller.current?.scrollTo(0, scroller.current.scrollHeight);
  };

  const hold = (): void => {
    const box = scroller.current;
    if (box === null) return;
    follows.current = false;
    kept.current = box.scrollHeight - box.scrollTop;
  };

  const release = (): void => {
    const box = scroller.current;
    if (box === null || kept.current === null) return;
    box.scrollTop = box.scrollHeight - kept.current;
    kept.current = null;
    // The button that was used may be gone.
    if (document.activeElement === document.body) box.focus();
  };

  useEffect(() => {
    const box = scroller.current;
    if (box === null || content.current === null) return undefined;
    let top = box.scrollTop;
    const scrolled = (): void => {
      const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      // Content that grows moves the end away, but only the reader moves up.
      follows.current = isNear || (follows.current && box.scrollTop >= top);
      top = box.scrollTop;
      setAtEnd(follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) box.scrollTop = box.scrollHeight;
      else scrolled();
    });
    grown.observe(content.current);
    grown.observe(box);
    // Without the element, the listener is gone as well.
    box.addEventListener('scroll', scrolled, { passive: true });
    return () => grown.disconnect();
  }, []);
  return { isAtEnd, toEnd, hold, release };
}
