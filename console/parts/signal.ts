/**
 * Values that components follow: a component that reads `value` while it renders is rendered again when it changes.
 *
 * Invariants:
 *  1. A component follows what it read in its last rendering, and nothing after it has gone.
 *  2. Several changes at once give one rendering.
 */
import { options } from 'preact';
import type { Component, Options, VNode } from 'preact';

export interface ReadonlySignal<T> {
  readonly value: T;
  /** The value, without following it. */
  peek(): T;
}

export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

export function signal<T>(initial: T): Signal<T> {
  const followers = new Set<Component>();
  let now = initial;
  return {
    get value() {
      if (rendered !== null) {
        followers.add(rendered);
        followed.get(rendered)?.push(followers);
      }
      return now;
    },
    set value(next) {
      if (Object.is(now, next)) return;
      now = next;
      // Not `setState`: a component may skip a rendering in which its own state stays the same.
      for (const follower of followers) follower.forceUpdate();
    },
    peek: () => now,
  };
}

/** The component that renders now. */
let rendered: Component | null = null;
/** By component: the followers of what it follows. */
const followed = new WeakMap<Component, Set<Component>[]>();

function forget(component: Component): void {
  for (const followers of followed.get(component) ?? []) followers.delete(component);
}

/* oxlint-disable no-underscore-dangle */
/** With the hooks that Preact has for its own packages: before a node is compared, and before a component renders. */
interface Element extends VNode {
  readonly __c?: Component | null;
}
const hooks: Options & { __b?: (element: Element) => void; __r?: (element: Element) => void } = options;
const { __b: compared, __r: renders, diffed, unmount } = hooks;
hooks.__b = (element) => {
  rendered = null;
  compared?.(element);
};
hooks.__r = (element) => {
  renders?.(element);
  rendered = element.__c ?? null;
  if (rendered === null) return;
  forget(rendered);
  followed.set(rendered, []);
};
hooks.diffed = (element) => {
  rendered = null;
  diffed?.(element);
};
hooks.unmount = (element: Element) => {
  if (element.__c != null) forget(element.__c);
  unmount?.(element);
};
