/** The first items of a list, and a button that shows all of them. */
import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { count } from './format.ts';
import * as limits from './limits.ts';

export function Bounded<T>({
  items,
  max = limits.rows,
  children,
}: {
  readonly items: readonly T[];
  readonly max?: number | undefined;
  /** Shows these items. */
  readonly children: (shown: readonly T[]) => ComponentChildren;
}) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && items.length > max;
  return (
    <>
      {children(isCut ? items.slice(0, max) : items)}
      {isCut && (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          Show all {count(items.length)}
        </button>
      )}
    </>
  );
}

/** A list that shows its first items. */
export function List<T>({
  items,
  of = 'list',
  max,
  children,
}: {
  readonly items: readonly T[];
  /** Class of the list. */
  readonly of?: string;
  readonly max?: number;
  readonly children: (item: T, at: number) => ComponentChildren;
}) {
  return (
    <Bounded items={items} max={max}>
      {(shown) => <ul class={of}>{shown.map(children)}</ul>}
    </Bounded>
  );
}
